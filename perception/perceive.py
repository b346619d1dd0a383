"""From one decoded clip to what was perceived in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from domain.media import Percept
from perception.jpeg import Blobs
from perception.keyframes import pick_keyframes

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import (
        FaceEngine,
        ScreenReader,
        SpeakerEncoder,
        SpeechRecognizer,
        VoiceActivity,
    )
    from perception.decode import RawClip


class Perceptors(Protocol):
    """The models that perceive."""

    @property
    def speech(self) -> SpeechRecognizer:
        """Speech to text."""

    @property
    def activity(self) -> VoiceActivity:
        """Where somebody speaks."""

    @property
    def faces(self) -> FaceEngine:
        """Faces with embeddings."""

    @property
    def speaker(self) -> SpeakerEncoder:
        """Voices as vectors."""

    @property
    def screen(self) -> ScreenReader:
        """Text on images."""


@dataclass(frozen=True)
class Perceived:
    """A percept, and the JPEGs it names by their SHA-256."""

    percept: Percept
    blobs: dict[str, bytes]


def perceive(raw: RawClip, tools: Perceptors, settings: WatchSettings) -> Perceived:  # noqa: ARG001
    """Everything that can be told of one clip by itself; the same clip gives the same percept.

    Raises:
        SetupError: a model's weights are not there.
        ModelError: a model failed.
    """
    blobs = Blobs()
    chosen = pick_keyframes(raw.frames, settings, blobs)
    percept = Percept(
        clip=raw.clip,
        keyframes=tuple(c.keyframe for c in chosen),
        gaps=raw.gaps,
        error=raw.error,
    )
    return Perceived(percept, dict(blobs))
