"""Joins scenes of several clips into one video with exactly known cuts and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.audio.stream import AudioStream
from av.video.stream import VideoStream

from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from perception.decode import decode_audio
from perception.picture_stream import read_pictures
from perception.source import probe

WIDTH, HEIGHT, FPS, HZ = 1280, 720, 25, 16_000
_FRAME_MS = 1000 // FPS


@dataclass(frozen=True)
class Scene:
    """An uncut part of a clip, in milliseconds of that clip, and who is in it.

    ``people``: those in view from left to right, each in their own part of the width. ``heard``:
    who of them speaks, if known. ``beside``: another clip, and a time in it, whose pictures are
    shown in the right half without their sound.
    """

    file: str
    start_ms: int
    end_ms: int
    people: tuple[str, ...] = ()
    heard: str = ""
    beside: tuple[str, int] | None = None

    @property
    def length_ms(self) -> int:
        """Return its length in the joined video: whole frames."""
        return (self.end_ms - self.start_ms) // _FRAME_MS * _FRAME_MS


def starts(scenes: Sequence[Scene]) -> list[int]:
    """Return the start of each scene in the joined video in milliseconds, and the end."""
    return list(accumulate((scene.length_ms for scene in scenes), initial=0))


def person_at(scenes: Sequence[Scene], time_ms: int, middle: float) -> str | None:
    """Return who is in view; ``middle`` is the middle of their face, 0 (left) to 1 (right)."""
    edges = starts(scenes)
    for scene, low, high in zip(scenes, edges, edges[1:], strict=False):
        if low <= time_ms < high and scene.people:
            place = min(len(scene.people) - 1, max(0, int(middle * len(scene.people))))
            return scene.people[place]
    return None


def speakers_at(scenes: Sequence[Scene], start_ms: int, end_ms: int) -> Counter[str]:
    """Count the milliseconds of a span by known speaker; "" where unknown."""
    edges, durations = starts(scenes), Counter[str]()
    for scene, low, high in zip(scenes, edges, edges[1:], strict=False):
        durations[scene.heard] += max(0, min(high, end_ms) - max(low, start_ms))
    return +durations


def join(
    scenes: Sequence[Scene], folder: Path, out: Path, on_scene: Callable[[], None] = lambda: None
) -> Path:
    """Write the scenes in sequence to ``out`` (H.264 and AAC), at one size and rate.

    Args:
        scenes: the scenes; their files are in ``folder``.
        folder: the clips.
        out: an MP4 file, overwritten.
        on_scene: called after each scene.
    """
    with av.open(str(out), "w") as container:
        video, audio = _streams(container)
        number = 0
        for scene in scenes:
            for picture in _pictures(folder, scene):
                picture.pts, picture.time_base = number, Fraction(1, FPS)
                container.mux(video.encode(picture))
                number += 1
            on_scene()
        container.mux(video.encode(None))
        for sound in _sounds(np.concatenate([_samples(folder / s.file, s) for s in scenes])):
            container.mux(audio.encode(sound))
        container.mux(audio.encode(None))
    return out


def _streams(container: Any) -> tuple[VideoStream, AudioStream]:
    video = container.add_stream("libx264", rate=FPS)
    video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    video.options = {"preset": "ultrafast", "crf": "20"}
    audio = container.add_stream("aac", rate=HZ, layout="mono")
    return video, audio


def _pictures(folder: Path, scene: Scene) -> Iterator[av.VideoFrame]:
    """Yield the picture of each frame of the scene, in the joined video's size."""
    frames, start = scene.length_ms // _FRAME_MS, scene.start_ms
    if scene.beside is None:
        halves = [_fitted(folder / scene.file, start, frames, WIDTH)]
    else:
        other_file, at = scene.beside
        halves = [
            _fitted(folder / scene.file, start, frames, WIDTH // 2),
            _fitted(folder / other_file, at, frames, WIDTH // 2),
        ]
    for parts in zip(*halves, strict=True):
        yield av.VideoFrame.from_ndarray(np.concatenate(parts, axis=1), "rgb24")


def _fitted(path: Path, start_ms: int, frames: int, width: int) -> Iterator[Any]:
    """Yield this number of pictures, each scaled to ``width`` and padded with black."""
    pictures = read_pictures(path, probe(path), WatchSettings(sample_fps=FPS), start_ms)
    try:
        decoded = (sampled.picture for sampled in pictures if sampled.picture is not None)
        yield from (_framed(picture, width) for picture in islice(decoded, frames))
    finally:
        pictures.close()


def _framed(picture: av.VideoFrame, max_width: int) -> Any:
    scale = min(max_width / picture.width, HEIGHT / picture.height)
    width, height = (int(side * scale) // 2 * 2 for side in (picture.width, picture.height))
    small = picture.reformat(width, height, "rgb24").to_ndarray()
    canvas = np.zeros((HEIGHT, max_width, 3), np.uint8)
    top, left = (HEIGHT - height) // 2, (max_width - width) // 2
    canvas[top : top + height, left : left + width] = small
    return canvas


def _samples(path: Path, scene: Scene) -> Any:
    """Return the sound of the scene; silence if the clip has none."""
    info = probe(path)
    end_ms = scene.start_ms + scene.length_ms
    clip = Clip(index=0, span=TimeSpan.of(scene.start_ms, end_ms))
    if not info.has_audio:
        return np.zeros(clip.span.length_ms * HZ // 1000, np.float32)
    return decode_audio(path, info, clip, HZ).samples


def _sounds(samples: Any) -> Iterator[av.AudioFrame]:
    for start in range(0, len(samples), HZ):
        sound = av.AudioFrame.from_ndarray(samples[None, start : start + HZ], "fltp", "mono")
        sound.sample_rate, sound.pts, sound.time_base = HZ, start, Fraction(1, HZ)
        yield sound
