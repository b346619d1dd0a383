"""Perceived media: clips, images, utterances, screen texts and sightings; live streams and gaps."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from domain.base import Frozen, StorableText
from domain.time import TimeSpan
from domain.words import make_storable


class StreamSettings(Frozen, allow_inf_nan=False):
    """How a live source is read: what counts as a gap, and how many clips may queue."""

    gap_ms: PositiveInt = Field(default=2_000, description="so long without anything is a gap")
    jump_ms: PositiveInt = Field(
        default=10_000, description="time stamps that leap further are a new clock"
    )
    least_ms: PositiveInt = Field(default=1_000, description="a shorter piece makes no clip")
    waiting: PositiveInt = Field(default=2, description="whole clips that may wait to be watched")
    connect_s: float = Field(default=10.0, gt=0, description="to reach the source")
    quiet_s: float = Field(default=15.0, gt=0, description="with nothing coming: connect anew")
    record: bool = Field(default=False, description="store what comes, so that it can be played")


class GapReason(StrEnum):
    """Why a span of a stream is not in memory."""

    LOST = "the connection was lost"
    SILENT = "nothing came"
    DAMAGED = "what came does not decode"
    STOPPED = "Homer was not watching"
    SHORT = "too short a piece to watch"
    OVERRUN = "Homer could not keep up"
    UNHEARD = "speech could not be recognised"


class Gap(Frozen):
    """A span that is not in memory; ``frames`` of a stream arrived and were dropped."""

    span: TimeSpan
    reason: GapReason
    frames: NonNegativeInt = 0


Stage = Literal["objects", "screen", "faces", "speech"]
"""A stage of perception that can be skipped."""


class DegradationLevel(Frozen):
    """How much of a clip is perceived when a live source is too fast to keep up with.

    ``share`` of the sampled frames is perceived; ``references_only``: frames that no other frame
    needs are not decoded; ``without`` are the stages skipped.
    """

    share: float = Field(gt=0, le=1)
    references_only: bool = False
    without: tuple[Stage, ...] = ()


LEVELS = (
    DegradationLevel(share=1.0),
    DegradationLevel(share=0.5),
    DegradationLevel(share=0.2, references_only=True),
    DegradationLevel(share=0.2, references_only=True, without=("objects", "screen")),
    DegradationLevel(share=0.2, references_only=True, without=("objects", "screen", "faces")),
    DegradationLevel(
        share=0.2, references_only=True, without=("objects", "screen", "faces", "speech")
    ),
)
"""The levels: first fewer frames, then fewer stages. Past the last level a clip becomes a gap."""


class PictureTally(Frozen):
    """Frame counts of a clip; ``came`` counts packets as received.

    ``sampled`` frames were perceived, ``damaged`` did not decode, all others were dropped.
    """

    came: NonNegativeInt = 0
    damaged: NonNegativeInt = 0
    sampled: NonNegativeInt = 0


class StreamClip(Frozen):
    """How a clip of a stream was watched.

    ``lag_ms``: from the arrival of its last packet until it was in memory; None: not yet.
    """

    clip: NonNegativeInt
    level: NonNegativeInt
    tally: PictureTally
    lag_ms: NonNegativeInt | None = None


class Stream(Frozen):
    """A live source. ``source`` is without user, password and keys; ``began_ms`` is Unix time."""

    source: StorableText
    began_ms: NonNegativeInt


class ClipState(StrEnum):
    """The processing state of a clip."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    DELETED = "deleted"
    """Its memories were deleted, and it is not watched again."""


class Video(Frozen):
    """A source, identified by the digest of its content.

    ``id`` is the first 16 hex digits of the SHA-256 of the file (or of the imported captions).
    """

    model_config = ConfigDict(from_attributes=True)
    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    title: StorableText
    path: str | None
    duration_ms: NonNegativeInt
    width: NonNegativeInt = 0
    height: NonNegativeInt = 0
    has_video: bool = True
    has_audio: bool = True
    profile: str = "local"
    subtitles: tuple[str, ...] | None = Field(
        default=None, description="the subtitles and chapters that were used; None: ignored"
    )
    audio_track: PositiveInt | None = Field(
        default=None,
        description="the number of the track of sound that is heard; None: the only one",
    )
    remarks: tuple[str, ...] = Field(
        default=(), description="what of the file is not watched, and what is odd about it"
    )

    @field_validator("path", mode="before")
    @classmethod
    def _drop_unstorable_path(cls, path: object) -> object:
        """Drop a path that cannot be stored as text: the file cannot be located by its row then."""
        return None if isinstance(path, str) and make_storable(path) != path else path


class Clip(Frozen):
    """One 30 s piece ``[start, end)`` of a video; the last one may be shorter."""

    index: NonNegativeInt
    span: TimeSpan


class Box(Frozen):
    """Pixels of the stored frame, clipped to it; ``x1 > x0`` and ``y1 > y0``."""

    x0: NonNegativeInt
    y0: NonNegativeInt
    x1: PositiveInt
    y1: PositiveInt

    @model_validator(mode="after")
    def _area(self) -> Self:
        if self.x1 <= self.x0 or self.y1 <= self.y0:
            raise ValueError("box without area")
        return self


class Keyframe(Frozen):
    """A stored frame. ``quality`` is eq. 2: sharpness x (1 + 0.3 x entropy)."""

    time_ms: NonNegativeInt
    shot: NonNegativeInt
    sharpness: float
    entropy: float
    quality: float
    width: PositiveInt
    height: PositiveInt
    blob: str = Field(description="SHA-256 of the JPEG")
    vector: tuple[float, ...] | None = Field(
        default=None, repr=False, description="of an image-text model, L2-normalised"
    )
    image_encoder: str | None = Field(default=None, description="the model that made the vector")
    likeness: tuple[float, ...] | None = Field(
        default=None, repr=False, description="what it looks like, L2-normalised"
    )


class TimedImage(Frozen):
    """A picture of a clip as JPEG, with its time."""

    time_ms: NonNegativeInt
    jpeg: bytes = Field(repr=False)


class ClipView(Frozen):
    """What a language model is shown of a clip besides its keyframes; nothing of it is stored.

    ``video`` is an MP4 of the whole clip. ``too_large``: it would have been larger than allowed,
    and frames stand for it.
    """

    frames: tuple[TimedImage, ...] = ()
    video: bytes | None = Field(default=None, repr=False)
    too_large: bool = False


KEYFRAMES_ONLY = ClipView()
"""Nothing besides the keyframes."""


class Utterance(Frozen):
    """Words said by one voice without a pause; ``voice`` is the number of its group, if known."""

    span: TimeSpan
    text: str
    language: str = ""
    confidence: float = Field(default=1.0, ge=0, le=1)
    voice: NonNegativeInt | None = None
    speaker: str | None = Field(default=None, description="a name the source itself gives")


class _OnKeyframe(Frozen):
    """Something found on a keyframe."""

    time_ms: NonNegativeInt
    score: float = Field(ge=0, le=1)
    box: Box


class ScreenText(_OnKeyframe):
    """A line of text read on a keyframe."""

    text: str


class SeenObject(_OnKeyframe):
    """An object detected on a keyframe, with the label of its class."""

    label: str = Field(min_length=1)


class Sound(Frozen):
    """A sound other than speech; ``kind`` is one of ``perception/sound_kinds.toml``."""

    span: TimeSpan
    kind: str = Field(min_length=1)
    score: float = Field(ge=0, le=1, description="the highest in the span")


class IdentityKind(StrEnum):
    """Whether an identity is a face or a voice."""

    FACE = "face"
    VOICE = "voice"


class Sighting(Frozen):
    """One face on one sampled frame, or one span of one voice."""

    span: TimeSpan
    box: Box | None = None
    score: float = Field(ge=0, le=1)
    quality: float = Field(ge=0)
    vector: tuple[float, ...] = Field(repr=False, description="L2-normalised embedding")
    blob: str | None = Field(default=None, description="SHA-256 of the crop's JPEG")


class Group(Frozen):
    """The sightings in one clip that belong to one face or one voice."""

    kind: IdentityKind
    number: NonNegativeInt
    sightings: tuple[Sighting, ...] = Field(min_length=1)


class Percept(Frozen):
    """Everything perceived in one clip; it refers to no other clip."""

    clip: Clip
    keyframes: tuple[Keyframe, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    sounds: tuple[Sound, ...] = ()
    screen_texts: tuple[ScreenText, ...] = ()
    objects: tuple[SeenObject, ...] = ()
    faces: tuple[Group, ...] = ()
    voices: tuple[Group, ...] = ()
    captions: tuple[Utterance, ...] = Field(
        default=(), description="descriptions that came with the source, not spoken"
    )
    subtitles: tuple[Utterance, ...] = Field(default=(), description="subtitles of the source")
    chapters: tuple[Utterance, ...] = Field(default=(), description="chapters that begin here")
    gaps: tuple[Gap, ...] = Field(
        default=(), description="what was neither seen nor heard, and why"
    )
    error: str | None = None
