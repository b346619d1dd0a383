"""``python -m benchmarks fading_frames``: a day of a stream, thinned out with age, without a store.

Frames are a third of the usual size, and so are the sides of the tiers. What stays is compared
with the law of the tiers, computed at once at the end from all frames that stayed at first: the
number of frames of each tier, and their bytes when each is encoded for one tier after the other.
(Encoded at once for the oldest tier they would have a twentieth more.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks.lines import Line, Taken, costs
from domain.media import Clip, TimedImage, Video
from domain.time import TimeSpan
from perception.frame_keeper import FrameChange, FrameToKeep, State, frames_for, kept_jpeg
from perception.images import Blobs
from strategies.vam.settings import HOUR, VisualMemorySettings
from strategies.vam.visual_memory import FrameReason, moment_keeper

DAY_H, CLIP_MS, EVENT_S = 26, 30_000, 120
WIDTH, HEIGHT, THIRD = 320, 176, 3
OFF, SPEED, FLAT_MB = 0.02, 60.0, 32.0
WATCHED = Video(id="d" * 16, title="day", path=None, duration_ms=0)
STAYING = (FrameReason.EVENT, FrameReason.STILL)


def thirds() -> VisualMemorySettings:
    """Return the settings with tiers of a third of their sides."""
    settings = VisualMemorySettings()
    tiers = tuple(one.model_copy(update={"side": one.side // THIRD}) for one in settings.tiers)
    return settings.model_copy(update={"tiers": tiers})


def picture(second: int) -> bytes:
    """Return a JPEG: events look unlike each other, moments within one a little."""
    event = np.random.default_rng(second // EVENT_S).integers(0, 255, (11, 20, 3), np.uint8)
    moment = np.random.default_rng(10**6 + second).integers(0, 255, (4, 20, 3), np.uint8)
    small = event.copy()
    row = second // 2 % 7
    small[row : row + 4] = moment
    image = small.repeat(HEIGHT // 11, 0).repeat(WIDTH // 20, 1)
    blobs = Blobs()
    return blobs[blobs.add(image, 85)]


@dataclass
class Day:
    """What is kept: tier, reason and bytes of each frame by its time; JPEGs are in a folder.

    ``thinned`` are frames that went with age, not since the end of their moment came later.
    """

    folder: Path
    settings: VisualMemorySettings
    tiers: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    thinned: list[int] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def watch(self) -> None:
        """Watch the day, clip by clip; the processor time of the keeper is counted."""
        keeper, process = moment_keeper(self.settings), psutil.Process()
        carried: State = {}
        for index in range(DAY_H * HOUR // CLIP_MS):
            clip = Clip(index=index, span=TimeSpan.of(index * CLIP_MS, (index + 1) * CLIP_MS))
            times = range(clip.span.start_ms, clip.span.end_ms, keeper.every_ms)
            frames = [TimedImage(time_ms=at, jpeg=picture(at // 1_000)) for at in times]
            began = time.process_time()
            made = keeper.keep(WATCHED, carried, None, clip, frames_for(keeper, frames))
            carried = made.state
            jpegs = {one.time_ms: one.jpeg for one in frames}
            for kept in made.frames:
                self._keep(kept, jpegs[kept.time_ms])
            for gone in made.dropped:
                self._drop(gone, clip.span.end_ms)
            for change in made.changed:
                self._change(change)
            self.seconds += time.process_time() - began
            if (index + 1) * CLIP_MS % HOUR == 0:
                self.rss_mb.append(process.memory_info().rss / 2**20)

    def _keep(self, kept: FrameToKeep, jpeg: bytes) -> None:
        data, _, _ = kept_jpeg(jpeg, kept)
        self._file(kept.time_ms).write_bytes(data)
        self.tiers[kept.time_ms], self.reasons[kept.time_ms] = kept.tier, kept.reason
        self.sizes[kept.time_ms] = len(data)

    def _drop(self, at: int, now_ms: int) -> None:
        self._file(at).unlink()
        if now_ms - at >= self.settings.tiers[0].from_age_ms:
            self.thinned.append(at)
        for known in (self.tiers, self.reasons, self.sizes):
            known.pop(at)

    def _change(self, change: FrameChange) -> None:
        at = change.time_ms
        if change.reason is not None:
            self.reasons[at] = change.reason
        if change.tier is not None:
            self.tiers[at] = change.tier
        if change.side is not None or change.quality is not None:
            data, _, _ = kept_jpeg(self._file(at).read_bytes(), change)
            self._file(at).write_bytes(data)
            self.sizes[at] = len(data)

    def _file(self, at: int) -> Path:
        return self.folder / f"{at}.jpg"


def lines() -> Iterator[Line]:
    """The frames and bytes of each tier beside its law; the speed, and how memory grows."""
    settings = thirds()
    with tempfile.TemporaryDirectory() as folder:
        day = Day(Path(folder), settings)
        day.watch()
        for number in range(len(settings.tiers) + 1):
            yield from _tier(day, number)
        speed = DAY_H * 3_600 / day.seconds
        yield costs(
            f"a stream of {DAY_H} hours, CPU beside its length",
            Taken((1_000 / speed,), "ms a second"),
            Taken((1_000 / SPEED,), "ms a second"),
            f"{SPEED:g} times real time",
            1.0,
        )
        growth = day.rss_mb[-1] - day.rss_mb[3]
        grown = Taken((max(0.0, growth),), "MB")
        yield costs("memory since the fourth hour", grown, Taken((FLAT_MB,), "MB"), "bar", 1.0)


def _tier(day: Day, number: int) -> Iterator[Line]:
    """Compare a tier with its law; a difference either way counts."""
    mine = [at for at, tier in day.tiers.items() if tier == number]
    expected = _law(day, number)
    name = f"tier {number}"
    yield _off(f"frames of {name}", len(mine), len(expected), "")
    size = sum(day.sizes[at] for at in mine) / 1_000
    yield _off(f"bytes of {name}", size, sum(map(_bytes(day, number), expected)) / 1_000, "kB")


def _off(what: str, ours: float, law: float, unit: str) -> Line:
    ratio = max(ours, law) / max(1e-9, min(ours, law))
    return Line(
        what, Taken((ours,), unit), Taken((law,), unit), "its law", ratio, 1 + OFF, more=False
    )


def _law(day: Day, number: int) -> list[int]:
    """Return the frames of a tier by its law: the first of each interval, and those that stay."""
    end_ms, settings = DAY_H * HOUR, day.settings
    everything = sorted([*day.tiers, *day.thinned])
    of_tier = [at for at in everything if settings.tier_of(end_ms - at) == number]
    if number == 0:
        return of_tier
    every = settings.tiers[number - 1].every_ms
    first: dict[int, int] = {}
    for at in everything:
        first.setdefault(at // every, at)
    return [at for at in of_tier if first[at // every] == at or day.reasons.get(at) in STAYING]


def _bytes(day: Day, number: int) -> Callable[[int], int]:
    """Return what gives the bytes of a frame that is encoded for each tier up to this one."""

    def size(at: int) -> int:
        jpeg = picture(at // 1_000)
        for tier in day.settings.tiers[:number]:
            jpeg, _, _ = kept_jpeg(jpeg, FrameToKeep(at, "", number, tier.side, tier.quality))
        return len(jpeg)

    return size
