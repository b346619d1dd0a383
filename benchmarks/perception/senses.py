"""Toolboxes with some models replaced by silent ones, so that one sense is judged alone."""

from __future__ import annotations

from models.ports import (
    FaceEngine,
    Image,
    ImageEncoder,
    ObjectDetector,
    Samples,
    ScreenReader,
    SoundClassifier,
    SpeakerEncoder,
    Speech,
    SpeechRecognizer,
    TextLine,
    VoiceActivity,
)
from models.toolbox import Toolbox


class OnlyPeople:
    """Faces, and voices if ``voices`` is set; no words, sounds, screen text and objects."""

    def __init__(self, toolbox: Toolbox, *, voices: bool) -> None:
        self.faces: FaceEngine = toolbox.faces
        self.speaker: SpeakerEncoder = toolbox.speaker
        self.activity: VoiceActivity = toolbox.activity if voices else _Silence()
        self.speech: SpeechRecognizer = _Deaf()
        self.screen: ScreenReader = _Blank()
        self.objects: ObjectDetector | None = None
        self.sounds: SoundClassifier | None = None
        self.images: ImageEncoder | None = None


class _Silence:
    """A voice activity detector that finds no speech."""

    def spans(self, samples: Samples) -> list[tuple[int, int]]:  # noqa: ARG002 - the port's
        """Return no spans."""
        return []


class _Deaf:
    """A speech recogniser that understands no word."""

    name = "deaf"
    languages: tuple[str, ...] = ()

    def transcribe(self, samples: Samples) -> list[Speech]:  # noqa: ARG002 - the port's
        """Return no speech."""
        return []


class _Blank:
    """A screen reader that finds no text."""

    name = "blank"

    def read(self, image: Image) -> list[TextLine]:  # noqa: ARG002 - the port's
        """Return no lines."""
        return []
