"""Shows a clip to a language model: a frame of every change, or a small video with sound.

Both are made of the pictures and the sound that were decoded for perception, so a file and a live
stream are shown alike, and nothing is decoded twice.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np

from domain.media import KEYFRAMES_ONLY, ClipView, TimedImage
from perception.images import encode_rgb, shrunk

if TYPE_CHECKING:
    from domain.settings import MemorySettings, WatchSettings
    from models.ports import Image
    from perception.decode import RawClip
    from perception.frames import Frame

JPEG_QUALITY = 80
AUDIO_BITS = 48_000
"""Bits a second of the sound: mono speech needs no more."""
AUDIO_FRAME = 1_024
"""Samples of one AAC frame."""
THUMBNAIL = (32, 18)
CELL_CHANGE = 25.0
"""A cell of a thumbnail has changed if one of its colours, in [0, 255], differs by more."""
CHANGED, SLIGHTLY = 0.1, 0.02
"""Parts of the cells: with more, a picture shows something else; with less, it shows the same."""
SLOW_MS = 7_500
"""After this time a slight change is shown too: a mouth moves at once, a shadow in a while."""
SMALLEST = 4
"""A video that is too large is made smaller, down to this part of its height."""
HEADROOM = 0.9
"""The part of the bytes that the bit rate is set for; containers and peaks take the rest."""


def clip_view(raw: RawClip, memory: MemorySettings, watch: WatchSettings) -> ClipView:
    """Return what a model is shown of a clip besides its keyframes, by ``memory.clip_view``."""
    if memory.clip_view == "keyframes" or not raw.frames:
        return KEYFRAMES_ONLY
    if memory.clip_view == "frames":
        return ClipView(frames=tuple(_telling_frames(raw, memory)))
    # The first of ever smaller ones that is not too large.
    part = 1
    while part <= SMALLEST:
        height = memory.clip_video_height // part
        video = encode_clip(raw, height, memory.clip_video_bytes, watch)
        if len(video) <= memory.clip_video_bytes:
            return ClipView(video=video)
        part *= 2
    return ClipView(frames=tuple(_telling_frames(raw, memory)), too_large=True)


def _telling_frames(raw: RawClip, memory: MemorySettings) -> Iterator[TimedImage]:
    """Yield the frames of a clip that change asks for: of a still slide one, of a fight the most.

    Frames at twice as many instants as may be shown are compared, each with the last that is kept;
    if too many are left, those that add least go.
    """
    span, count = raw.clip.span, 2 * memory.clip_frames
    step = span.length_ms / count
    instants = [span.start_ms + (n + 0.5) * step for n in range(count)]
    kept: list[tuple[float, Frame, Image]] = []
    for index in dict.fromkeys(_shown_at(raw.frames, instant) for instant in instants):
        frame = raw.frames[index]
        image = shrunk(frame.image, memory.clip_frame_side / max(frame.image.shape[:2]))
        change = picture_change(kept[-1][2], image) if kept else 1.0
        slow = kept and frame.time_ms - kept[-1][1].time_ms >= SLOW_MS
        if change >= (SLIGHTLY if slow else CHANGED):
            kept.append((change, frame, image))
    while len(kept) > memory.clip_frames:
        times = [span.start_ms, *(frame.time_ms for _, frame, _ in kept), span.end_ms]
        # Of frames that change as much, the one goes that is closest to those beside it.
        least = [(round(one[0], 1), times[n + 2] - times[n]) for n, one in enumerate(kept)]
        del kept[least.index(min(least))]
    for _, frame, image in kept:
        yield TimedImage(time_ms=frame.time_ms, jpeg=encode_rgb(image, JPEG_QUALITY))


def picture_change(first: Image, second: Image) -> float:
    """Return the part of two pictures that differs, in [0, 1]; both (H, W, 3), of any size."""
    small = [cv2.resize(one, THUMBNAIL, interpolation=cv2.INTER_AREA) for one in (first, second)]
    return float((cv2.absdiff(small[0], small[1]).max(axis=2) > CELL_CHANGE).mean())


def _shown_at(frames: list[Frame], instant_ms: float) -> int:
    """Return the index of the frame that is shown at an instant; before the first, the first."""
    return max(0, bisect_right(frames, instant_ms, key=lambda frame: frame.time_ms) - 1)


def encode_clip(raw: RawClip, height: int, max_bytes: int, watch: WatchSettings) -> bytes:
    """Encode a clip as MP4: H.264 in one thread, so that equal clips give equal bytes, and AAC.

    Args:
        raw: The decoded clip, with one frame at least.
        height: Pixels that the picture is high at most; both sides are even.
    """
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as container:
        rate = Fraction(watch.sample_fps).limit_denominator(1_000)
        first = raw.frames[0].image
        scale = min(1.0, height / first.shape[0])
        # Even, as H.264 needs them.
        height, width = (max(1, round(side * scale / 2)) * 2 for side in first.shape[:2])
        video = container.add_stream("libx264", rate=rate)
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.thread_count = 1
        seconds = max(1.0, raw.clip.span.length_ms / 1_000)
        bits = max(50_000, int(max_bytes * 8 * HEADROOM / seconds) - AUDIO_BITS)
        video.options = {
            "preset": "veryfast",
            "crf": "28",
            "maxrate": str(bits),
            "bufsize": str(bits),
        }
        sound = None
        if len(raw.samples):
            sound = container.add_stream("aac", rate=watch.audio_hz, layout="mono")
            sound.bit_rate = AUDIO_BITS
        # A constant rate, since models take pictures by their number.
        last, picture = -1, None
        for number in range(max(1, int(raw.clip.span.length_ms * rate / 1_000))):
            shown = _shown_at(raw.frames, raw.clip.span.start_ms + float(number * 1_000 / rate))
            if shown != last or picture is None:
                size = (width, height)
                image = cv2.resize(raw.frames[shown].image, size, interpolation=cv2.INTER_AREA)
                pixels = np.ascontiguousarray(image, dtype=np.uint8)
                rgb = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                picture, last = rgb.reformat(format="yuv420p"), shown
            picture.pts, picture.time_base = number, 1 / rate
            container.mux(video.encode(picture))
        container.mux(video.encode(None))
        if sound is not None:
            hz = watch.audio_hz
            for start in range(0, len(raw.samples), AUDIO_FRAME):
                part = np.ascontiguousarray(
                    raw.samples[None, start : start + AUDIO_FRAME], np.float32
                )
                frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = hz, start, Fraction(1, hz)
                container.mux(sound.encode(frame))
            container.mux(sound.encode(None))
    return target.getvalue()
