"""Joins scenes of several clips into one video, so that cuts and people in it are known exactly."""

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
from perception.picture_stream import Pictures
from perception.sound import hear
from perception.source import probe

WIDTH, HEIGHT, FPS, HZ = 1280, 720, 25, 16_000
_FRAME_MS = 1000 // FPS


@dataclass(frozen=True)
class Scene:
    """A stretch of a clip without a cut in it, in milliseconds of that clip, and who is in it.

    ``people`` are those in view from left to right, each in their own part of the width.
    ``heard`` is who of them speaks, where somebody does and it is known. ``beside`` is another
    clip, and where in it, whose pictures are shown in the right half without their sound.
    """

    file: str
    start_ms: int
    end_ms: int
    people: tuple[str, ...] = ()
    heard: str = ""
    beside: tuple[str, int] | None = None

    @property
    def length_ms(self) -> int:
        """How long it is in the joined video: whole frames."""
        return (self.end_ms - self.start_ms) // _FRAME_MS * _FRAME_MS


def starts(scenes: Sequence[Scene]) -> list[int]:
    """Where each scene begins in the joined video, in milliseconds, and where the last ends."""
    return list(accumulate((scene.length_ms for scene in scenes), initial=0))


def person_at(scenes: Sequence[Scene], time_ms: int, middle: float) -> str | None:
    """Who is in view there; ``middle`` is the middle of their face, 0 (left) to 1 (right)."""
    edges = starts(scenes)
    for scene, low, high in zip(scenes, edges, edges[1:], strict=False):
        if low <= time_ms < high and scene.people:
            place = min(len(scene.people) - 1, max(0, int(middle * len(scene.people))))
            return scene.people[place]
    return None


def heard_at(scenes: Sequence[Scene], start_ms: int, end_ms: int) -> Counter[str]:
    """Milliseconds of a stretch by who is known to speak in it; "" where nobody is."""
    edges, found = starts(scenes), Counter[str]()
    for scene, low, high in zip(scenes, edges, edges[1:], strict=False):
        found[scene.heard] += max(0, min(high, end_ms) - max(low, start_ms))
    return +found


def join(
    scenes: Sequence[Scene], folder: Path, out: Path, told: Callable[[], None] = lambda: None
) -> Path:
    """Write the scenes one after the other to ``out`` (H.264 and AAC), all at one size and rate.

    Args:
        scenes: what to join; their files lie in ``folder``.
        folder: the clips.
        out: an MP4 file, written over.
        told: called after each scene.
    """
    with av.open(str(out), "w") as container:
        video, audio = _streams(container)
        number = 0
        for scene in scenes:
            for picture in _pictures(folder, scene):
                picture.pts, picture.time_base = number, Fraction(1, FPS)
                container.mux(video.encode(picture))
                number += 1
            told()
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
    """The picture that is shown at each frame of the scene, in the joined video's size."""
    wanted, start = scene.length_ms // _FRAME_MS, scene.start_ms
    if scene.beside is None:
        halves = [_fitted(folder / scene.file, start, wanted, WIDTH)]
    else:
        other, at = scene.beside
        halves = [
            _fitted(folder / scene.file, start, wanted, WIDTH // 2),
            _fitted(folder / other, at, wanted, WIDTH // 2),
        ]
    for parts in zip(*halves, strict=True):
        yield av.VideoFrame.from_ndarray(np.concatenate(parts, axis=1), "rgb24")


def _fitted(path: Path, start_ms: int, wanted: int, width: int) -> Iterator[Any]:
    """So many whole pictures, each as large as fits into ``width``, black around it."""
    every = Pictures(path, probe(path), WatchSettings(sample_fps=FPS), start_ms)
    try:
        shown = (one.picture for one in every if one.picture is not None)
        yield from (_framed(picture, width) for picture in islice(shown, wanted))
    finally:
        every.close()


def _framed(picture: av.VideoFrame, most: int) -> Any:
    scale = min(most / picture.width, HEIGHT / picture.height)
    width, height = (int(side * scale) // 2 * 2 for side in (picture.width, picture.height))
    small = picture.reformat(width, height, "rgb24").to_ndarray()
    canvas = np.zeros((HEIGHT, most, 3), np.uint8)
    top, left = (HEIGHT - height) // 2, (most - width) // 2
    canvas[top : top + height, left : left + width] = small
    return canvas


def _samples(path: Path, scene: Scene) -> Any:
    """The sound of the scene, silence where the clip has none."""
    info = probe(path)
    end_ms = scene.start_ms + scene.length_ms
    clip = Clip(index=0, span=TimeSpan.of(scene.start_ms, end_ms))
    if not info.has_audio:
        return np.zeros(clip.span.length_ms * HZ // 1000, np.float32)
    return hear(path, info, clip, HZ).samples


def _sounds(samples: Any) -> Iterator[av.AudioFrame]:
    for start in range(0, len(samples), HZ):
        sound = av.AudioFrame.from_ndarray(samples[None, start : start + HZ], "fltp", "mono")
        sound.sample_rate, sound.pts, sound.time_base = HZ, start, Fraction(1, HZ)
        yield sound
