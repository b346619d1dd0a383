"""What comes of a live source, cut into clips on the grid of video time.

A clip begins and ends where something came: where a source breaks off, the clip does too, and no
clip is made of a stretch in which nothing came. At most two clips are open at a time, since sound
and pictures do not arrive together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Clip
from domain.streams import LEVELS, Gap, GapReason, PictureTally, StreamSettings
from domain.time import TimeSpan
from perception.decode import RawClip
from perception.frame_metrics import Measurer
from perception.sampling import SampleGrid
from perception.sound import Sound

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings

_MS = Fraction(1, 1000)
_LATE_MS = 2_000
"""A clip is closed when one stream is so far past its end that the other will bring no more."""


@dataclass(frozen=True, eq=False)
class Captured:
    """A clip as it came, at what level, with the gaps before and within it.

    ``came_ms``: when the last of it had come, in Unix milliseconds. ``waits``: the source sends
    the next one only when there is room, so nothing need be left out.
    """

    raw: RawClip
    tally: PictureTally
    level: int
    gaps: tuple[Gap, ...]
    came_ms: int = 0
    waits: bool = False


@dataclass(eq=False)
class _Open:
    """A clip that is still coming in; ``span`` is as long as it may get."""

    span: TimeSpan
    level: int
    grid: SampleGrid
    measurer: Measurer
    sound: Sound | None = None
    sampled: int = 0
    covered: list[tuple[int, int]] = field(default_factory=list)


class LiveClips:
    """Takes decoded pictures and sound by their place on video time, and gives whole clips."""

    def __init__(
        self,
        watch: WatchSettings,
        stream: StreamSettings,
        *,
        start_ms: int = 0,
        first_clip: int = 0,
        level: Callable[[], int] = lambda: 0,
    ) -> None:
        self._watch, self._stream, self._level = watch, stream, level
        self._open: list[_Open] = []
        self._end, self._next = start_ms, first_clip
        self._reached: dict[str, int] = {}
        self._held: av.VideoFrame | None = None
        self._since, self._usual = 0, 40
        self._came = self._damaged = 0
        self._breaks: list[tuple[int, GapReason]] = []
        self.owed: tuple[Gap, ...] = ()
        """Gaps after the last clip that was given."""
        self.broke(start_ms, GapReason.STOPPED)

    def broke(self, at_ms: int, reason: GapReason) -> None:
        """Why nothing comes after ``at_ms``, if nothing does."""
        if not self._breaks or self._breaks[-1] != (at_ms, reason):
            self._breaks.append((at_ms, reason))

    def left_out(self) -> None:
        """The clip that was given last is not kept: its number goes to the next."""
        self._next -= 1

    def came(self, packets: int = 1, damaged: int = 0) -> None:
        """Counts pictures as the source sends them, and those that do not decode."""
        self._came, self._damaged = self._came + packets, self._damaged + damaged

    def picture(self, frame: av.VideoFrame | None, at_ms: int) -> Iterator[Captured]:
        """The picture that appears at ``at_ms``; None is one that did not decode."""
        if frame is None and self._held is not None:
            self.broke(self._since, GapReason.DAMAGED)
        if self._held is not None and at_ms > self._since:
            self._show(at_ms)
        if self._held is None or at_ms > self._since:
            self._held, self._since = frame, max(at_ms, 0)
        yield from self._reach("video", at_ms)

    def sound(self, frame: av.AudioFrame, at_ms: int) -> Iterator[Captured]:
        """A stretch of sound that begins at ``at_ms``."""
        length = frame.samples * 1000 // (frame.sample_rate or 1)
        for one in self._over(at_ms, at_ms + max(1, length)):
            if one.sound is None:
                clip = Clip(index=self._next, span=one.span)
                one.sound = Sound(Fraction(0), clip, self._watch.audio_hz)
            frame.pts, frame.time_base = at_ms, _MS
            one.sound.add(frame)
        yield from self._reach("audio", at_ms)

    def pause(self) -> None:
        """The connection broke: the picture shown last stays no longer than usual."""
        self._show(self._since + self._usual)
        self._held = None
        self._reached.clear()

    def flush(self) -> Iterator[Captured]:
        """Nothing more will come: what is open is given as it is."""
        self.pause()
        while self._open:
            yield from self._close()

    def close(self) -> None:
        """Let go of what is open, unseen."""
        while self._open:
            self._open.pop().measurer.close()

    def until(self, now_ms: int) -> Iterator[Captured]:
        """Clips that are over by the clock on the wall; to be asked while nothing comes."""
        while self._open and self._open[0].span.end_ms <= now_ms:
            yield from self._close()

    def _show(self, until_ms: int) -> None:
        """Samples the picture that is held, shown up to ``until_ms``."""
        held, since = self._held, self._since
        if held is None:
            return
        if until_ms - since <= self._stream.gap_ms:
            self._usual = until_ms - since
        until = min(until_ms, since + self._usual)
        for one in self._over(since, until):
            start, end = max(since, one.span.start_ms), min(until, one.span.end_ms)
            if next(one.grid.within(start, end), None) is not None:
                one.measurer.take(held, start)
                one.sampled += 1

    def _over(self, start_ms: int, end_ms: int) -> list[_Open]:
        """The open clips that share a span; those are opened that it is the first of."""
        found = []
        at = max(start_ms, self._end if not self._open else self._open[0].span.start_ms)
        while at < end_ms:
            one = next((o for o in self._open if o.span.start_ms <= at < o.span.end_ms), None)
            one = one or self._begin(at)
            one.covered.append((at, min(end_ms, one.span.end_ms)))
            found.append(one)
            at = one.span.end_ms
        return found

    def _begin(self, at_ms: int) -> _Open:
        length, level = self._watch.clip_ms, self._level()
        start = at_ms // length * length
        span = TimeSpan.of(max(start, self._end), start + length)
        grid = SampleGrid(length, self._watch.sample_fps * LEVELS[level].share)
        one = _Open(span, level, grid, Measurer(0, self._watch))
        self._open = sorted([*self._open, one], key=lambda o: o.span.start_ms)
        return one

    def _reach(self, stream: str, at_ms: int) -> Iterator[Captured]:
        """Closes the clips that nothing more will come of."""
        self._reached[stream] = max(at_ms, self._reached.get(stream, 0))
        low, high = min(self._reached.values()), max(self._reached.values())
        while self._open and (
            low >= self._open[0].span.end_ms or high >= self._open[0].span.end_ms + _LATE_MS
        ):
            yield from self._close()

    def _close(self) -> Iterator[Captured]:
        one = self._open.pop(0)
        parts = _joined(one.covered, self._stream.gap_ms)
        span = self._trimmed(one.span, parts)
        self.owed = (*self.owed, *self._gaps(span, parts))
        tally = PictureTally(came=self._came, damaged=self._damaged, sampled=one.sampled)
        self._end, self._came, self._damaged = span.end_ms, 0, 0
        late = span.end_ms - self._stream.gap_ms
        self._breaks = [found for found in self._breaks if found[0] >= late]
        try:
            if span.length_ms >= self._stream.least_ms:
                yield self._given(one, span, tally)
            else:
                missed = Gap(span=span, reason=GapReason.SHORT, frames=tally.came)
                self.owed = (*self.owed, missed)
        finally:
            one.measurer.close()

    def _given(self, one: _Open, span: TimeSpan, tally: PictureTally) -> Captured:
        """The clip, with the gaps that are owed."""
        if one.sound is not None:
            one.sound.finish()
        frames = one.measurer.measured().frames
        heard = one.sound is not None and one.sound.heard
        error = None if frames or heard else "nothing of what came of this clip decodes"
        holes = tuple(gap.span for gap in self.owed if gap.span.start_ms >= span.start_ms)
        clip, gaps = Clip(index=self._next, span=span), self.owed
        self._next, self.owed = self._next + 1, ()
        raw = RawClip(clip, frames, self._samples(one, span), holes, error)
        return Captured(raw, tally, one.level, gaps)

    def _trimmed(self, span: TimeSpan, parts: list[tuple[int, int]]) -> TimeSpan:
        """The clip without what is missing at its ends."""
        start, end = parts[0][0], parts[-1][1]
        gap = self._stream.gap_ms
        return TimeSpan.of(
            start if start - span.start_ms >= gap else span.start_ms,
            end if span.end_ms - end >= gap else span.end_ms,
        )

    def _gaps(self, span: TimeSpan, parts: list[tuple[int, int]]) -> tuple[Gap, ...]:
        """What is missing before and within the clip, and why."""
        ends = [self._end, *(end for _, end in parts[:-1])]
        starts = [span.start_ms, *(start for start, _ in parts[1:])]
        pairs = zip(ends, starts, strict=True)
        return tuple(
            Gap(span=TimeSpan.of(end, start), reason=self._why(end, start))
            for end, start in pairs
            if start - end >= self._stream.gap_ms
        )

    def _why(self, start_ms: int, end_ms: int) -> GapReason:
        within = (why for at, why in self._breaks if start_ms - self._stream.gap_ms <= at <= end_ms)
        return next(within, GapReason.SILENT)

    def _samples(self, one: _Open, span: TimeSpan) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        if one.sound is None:
            return np.zeros(0, np.float32)
        hz, start = self._watch.audio_hz, one.span.start_ms
        low, high = (span.start_ms - start) * hz // 1000, (span.end_ms - start) * hz // 1000
        return one.sound.samples[low:high].copy()


def _joined(covered: list[tuple[int, int]], gap_ms: int) -> list[tuple[int, int]]:
    """The same time as stretches in order, those less than ``gap_ms`` apart as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(covered):
        if joined and start - joined[-1][1] < gap_ms:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
