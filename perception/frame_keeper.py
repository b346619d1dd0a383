"""Frames that outlive their clip: a keeper decides which, in the order of time, while watching.

A clip's pictures are sampled where it is decoded, as JPEGs, so that a keeper sees the same pixels
wherever the clip was perceived, and a frame that is kept at its size is not encoded again. What a
keeper carries from clip to clip is stored with the clip, so a run that was killed goes on from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from domain.media import TimedImage
from perception.images import Blobs, decode_bgr, decode_stored, encode_shrunk

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder, Vector
    from perception.decode import RawClip

State = Mapping[str, JsonValue]
"""What a keeper carries from clip to clip, as JSON; empty at the start."""

KEPT_QUALITY = 90
"""JPEG quality of frames that are made smaller, unless the keeper names one."""


@dataclass(frozen=True)
class FrameToKeep:
    """A frame of the clip to keep.

    ``reason`` says why, ``tier`` how far it is shrunk: to ``side`` pixels at most and with this
    JPEG quality. Without both the sampled JPEG is kept as it is. ``vector`` is stored with it, of
    those that ``vectors`` names; without one it gets that of the profile's image-text model.
    """

    time_ms: int
    reason: str
    tier: int = 0
    side: int | None = None
    quality: int | None = None
    vector: Vector | None = field(default=None, compare=False)
    vectors: str = ""


@dataclass(frozen=True)
class FrameChange:
    """What changes of a frame of an earlier clip; None: that stays as it is.

    Where ``side`` or ``quality`` is given, its stored JPEG is encoded anew. A frame that is no
    longer stored is passed over.
    """

    time_ms: int
    reason: str | None = None
    tier: int | None = None
    side: int | None = None
    quality: int | None = None


@dataclass(frozen=True)
class KeptFrames:
    """What a keeper makes of a clip.

    ``frames`` of it are kept; ``dropped`` are the times of frames of earlier clips that are kept no
    longer, ``changed`` are frames of earlier clips that are not dropped; ``state`` is given with
    the next clip.
    """

    frames: Sequence[FrameToKeep]
    state: State
    dropped: Sequence[int] = ()
    changed: Sequence[FrameChange] = ()


class HeldEvent(NamedTuple):
    """An event in a keeper's short-term memory: its number from 0, and its frames there.

    ``seen`` frames of it were seen by now; ``times_ms`` are those that are held, in order.
    """

    number: int
    seen: int
    times_ms: tuple[int, ...]


KeepFrames = Callable[
    ["Video", State, "ImageEncoder | None", "Clip", Iterator[tuple[int, "Image"]]], KeptFrames
]
"""Decides which frames of a clip are kept.

It is given the video; the state after the clip before, empty at the start and in the midst of a
video of which something was deleted; the profile's image-text model, if it has one; the clip, which
follows those before (clips that failed are left out); and (time in ms, H x W x 3 BGR) in order of
time, each decoded when it is asked for. No array need be held: frames are named by their time.
"""


@dataclass(frozen=True)
class FrameKeeper:
    """Keeps frames for a strategy. Its memory, state included, is bounded.

    ``version`` is stored with what it keeps. It is shown what the video shows at the multiples of
    ``every_ms``. It begins anew with each clip, so that it makes no difference where a run was
    killed.
    """

    version: int
    every_ms: int
    keep: KeepFrames


def sample_frames(raw: RawClip, every_ms: Collection[int], quality: int) -> tuple[TimedImage, ...]:
    """Return what a clip shows at the multiples of each of ``every_ms``, outside of its gaps.

    Args:
        every_ms: the intervals of all keepers; none: nothing is sampled.
    """
    span = raw.clip.span
    instants = sorted(
        {
            time
            for every in every_ms
            for time in range(-(-span.start_ms // every) * every, span.end_ms, every)
            if not any(gap.start_ms <= time < gap.end_ms for gap in raw.gaps)
        }
    )
    sampled = list[TimedImage]()
    last, jpeg = -1, b""
    for time in instants:
        shown = bisect_right(raw.frames, time, key=lambda frame: frame.time_ms) - 1
        if shown < 0:
            continue
        if shown != last:
            blobs = Blobs()
            jpeg = blobs[blobs.add(raw.frames[shown].image, quality)]
            last = shown
        sampled.append(TimedImage(time_ms=time, jpeg=jpeg))
    return tuple(sampled)


def frames_for(keeper: FrameKeeper, sampled: Iterable[TimedImage]) -> Iterator[tuple[int, Image]]:
    """Decode those of the sampled frames that a keeper is shown, one at a time."""
    jpeg, image = b"", None
    for one in sampled:
        if one.time_ms % keeper.every_ms:
            continue
        if one.jpeg is not jpeg:
            jpeg, image = one.jpeg, decode_bgr(one.jpeg)
        if image is not None:
            yield one.time_ms, image


def kept_jpeg(jpeg: bytes, frame: FrameToKeep | FrameChange) -> tuple[bytes, int, int]:
    """Return the JPEG of a frame as it is to be kept, with its width and height.

    Raises:
        BlobGone: it cannot be read.
    """
    image = decode_stored(jpeg)
    height, width = image.shape[:2]
    too_large = frame.side is not None and max(width, height) > frame.side
    if not too_large and frame.quality is None:
        return jpeg, width, height
    side = min(frame.side or width + height, max(width, height))
    return encode_shrunk(image, side, frame.quality or KEPT_QUALITY)
