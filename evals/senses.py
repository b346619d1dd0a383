"""A profile's models of which only some have anything to say, so that one sense is judged alone."""

from __future__ import annotations

from models.ports import (
    FaceEngine,
    Image,
    ImageEncoder,
    ObjectDetector,
    Samples,
    ScreenReader,
    SpeakerEncoder,
    Speech,
    SpeechRecognizer,
    TextLine,
    VoiceActivity,
)
from models.toolbox import Toolbox


class OnlyPeople:
    """Faces, and voices where ``voices`` is set; no words, no text and no things."""

    def __init__(self, toolbox: Toolbox, *, voices: bool) -> None:
        self.faces: FaceEngine = toolbox.faces
        self.speaker: SpeakerEncoder = toolbox.speaker
        self.activity: VoiceActivity = toolbox.activity if voices else _Silence()
        self.speech: SpeechRecognizer = _Deaf()
        self.screen: ScreenReader = _Blank()
        self.objects: ObjectDetector | None = None
        self.images: ImageEncoder | None = None


class _Silence:
    """Nobody speaks."""

    def spans(self, samples: Samples) -> list[tuple[int, int]]:  # noqa: ARG002 - the port's
        """None."""
        return []


class _Deaf:
    """No word is understood."""

    name = "deaf"
    languages: tuple[str, ...] = ()

    def transcribe(self, samples: Samples) -> list[Speech]:  # noqa: ARG002 - the port's
        """None."""
        return []


class _Blank:
    """Nothing is written anywhere."""

    name = "blank"

    def read(self, image: Image) -> list[TextLine]:  # noqa: ARG002 - the port's
        """None."""
        return []
