"""Cuts a live source into clips on the grid of video time.

A clip begins and ends where something came: where a source breaks off, the clip does too, and no
clip is made of a stretch in which nothing came. At most two clips are open at a time, since sound
and pictures do not arrive together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition
from typing import TYPE_CHECKING

from domain.media import LEVELS, Clip, Gap, GapReason, PictureTally, StreamSettings
from domain.time import TimeSpan
from perception.decode import NO_SOUND, ClipAudio, RawClip, lookahead_ms
from perception.frames import AS_STORED, SampleGrid
from perception.quality import FrameMeasurer

if TYPE_CHECKING:
    import av

    from domain.settings import WatchSettings
    from models.ports import Samples
    from perception.frames import Frame
    from perception.recording import ClipRecording

_LATE_MS = 2_000
"""A clip is closed when one stream is so far past its end that the other will bring no more."""


@dataclass(frozen=True, eq=False)
class CapturedClip:
    """A decoded clip of a live source, with its degradation level and gaps.

    Attributes:
        raw: The decoded clip.
        tally: Pictures that arrived, were damaged and were sampled.
        level: Degradation level at which it was sampled.
        gaps: Gaps before and within the clip.
        arrived_ms: When the last of it arrived, in Unix milliseconds.
        can_wait: Whether the source waits for its reader, so that no clip has to be dropped.
        recording: What came, as a video; None where it is not recorded.
    """

    raw: RawClip
    tally: PictureTally
    level: int
    gaps: tuple[Gap, ...]
    arrived_ms: int = 0
    can_wait: bool = False
    recording: ClipRecording | None = None


@dataclass(eq=False)
class _OpenClip:
    """A clip that is still arriving; ``span`` is as long as it may get."""

    span: TimeSpan
    level: int
    grid: SampleGrid
    measurer: FrameMeasurer
    audio: ClipAudio | None = None
    came: int = 0
    damaged: int = 0
    sampled: int = 0
    covered: list[tuple[int, int]] = field(default_factory=list)


class LiveClips:
    """Collects decoded pictures and audio by video time, and yields complete clips."""

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
        self._open: list[_OpenClip] = []
        self._end, self._next = start_ms, first_clip
        self._reached: dict[str, int] = {}
        self._held: av.VideoFrame | None = None
        self._held_since, self._usual_ms = 0, 40
        self._arrived = self._damaged = 0
        self._breaks: list[tuple[int, GapReason]] = []
        self.pending_gaps: tuple[Gap, ...] = ()
        """Gaps after the last clip that was given."""
        self.note_break(start_ms, GapReason.STOPPED)

    def note_break(self, at_ms: int, reason: GapReason) -> None:
        """Note why nothing arrives after ``at_ms``, if nothing does."""
        if not self._breaks or self._breaks[-1] != (at_ms, reason):
            self._breaks.append((at_ms, reason))

    def discard_last(self) -> None:
        """Discard the clip that was yielded last: the next one gets its number."""
        self._next -= 1

    def count_pictures(self, packets: int = 1, damaged: int = 0) -> None:
        """Count pictures that arrived, and those that do not decode."""
        if self._open:
            # A clip whose pictures are all there only waits for sound that follows it.
            shown = self._reached.get("video", 0)
            of = next((one for one in self._open if one.span.end_ms > shown), self._open[-1])
            of.came, of.damaged = of.came + packets, of.damaged + damaged
        else:
            self._arrived, self._damaged = self._arrived + packets, self._damaged + damaged

    def add_picture(self, frame: av.VideoFrame | None, at_ms: int) -> Iterator[CapturedClip]:
        """Add the picture that appears at ``at_ms``; None is one that did not decode."""
        if frame is None and self._held is not None:
            self.note_break(self._held_since, GapReason.DAMAGED)
        if self._held is not None and at_ms > self._held_since:
            self._sample_held(at_ms)
        if self._held is None or at_ms > self._held_since:
            self._held, self._held_since = frame, max(at_ms, 0)
        yield from self._close_finished("video", at_ms)

    def add_audio(self, frame: av.AudioFrame, at_ms: int) -> Iterator[CapturedClip]:
        length = frame.samples * 1000 // (frame.sample_rate or 1)
        for open_clip in self._clips_in(at_ms, at_ms + max(1, length)):
            if open_clip.audio is None:
                clip = Clip(index=self._next, span=open_clip.span)
                open_clip.audio = ClipAudio(clip, self._watch.audio_hz)
            open_clip.audio.add(frame, at_ms / 1000)
        yield from self._close_finished("audio", at_ms)

    def pause(self) -> None:
        """End the current picture after the usual duration: the connection broke."""
        self._sample_held(self._held_since + self._usual_ms)
        self._held = None
        self._reached.clear()

    def flush(self) -> Iterator[CapturedClip]:
        """Yield the open clips as they are: nothing more will arrive."""
        self.pause()
        while self._open:
            yield from self._close_first()

    def close(self) -> None:
        while self._open:
            self._open.pop().measurer.close()

    def close_until(self, now_ms: int) -> Iterator[CapturedClip]:
        """Yield the clips that end by wall-clock time ``now_ms``; call it while nothing arrives."""
        while self._open and self._open[0].span.end_ms <= now_ms:
            yield from self._close_first()

    def _sample_held(self, until_ms: int) -> None:
        """Sample the current picture, shown until ``until_ms``."""
        held, since = self._held, self._held_since
        if held is None:
            return
        if until_ms - since <= self._stream.gap_ms:
            self._usual_ms = until_ms - since
        until = min(until_ms, since + self._usual_ms)
        for open_clip in self._clips_in(since, until):
            start, end = max(since, open_clip.span.start_ms), min(until, open_clip.span.end_ms)
            if next(open_clip.grid.within(start, end), None) is not None:
                open_clip.measurer.add(held, start)
                open_clip.sampled += 1

    def _clips_in(self, start_ms: int, end_ms: int) -> list[_OpenClip]:
        """Return the open clips that overlap a span, opening new ones as needed."""
        found = []
        at = max(start_ms, self._end if not self._open else self._open[0].span.start_ms)
        while at < end_ms:
            open_clip = next((o for o in self._open if o.span.start_ms <= at < o.span.end_ms), None)
            open_clip = open_clip or self._open_clip(at)
            open_clip.covered.append((at, min(end_ms, open_clip.span.end_ms)))
            found.append(open_clip)
            at = open_clip.span.end_ms
        return found

    def _open_clip(self, at_ms: int) -> _OpenClip:
        length, level = self._watch.clip_ms, self._level()
        start = at_ms // length * length
        span = TimeSpan.of(max(start, self._end), start + length)
        grid = SampleGrid(length, self._watch.sample_fps * LEVELS[level].share)
        opened = _OpenClip(span, level, grid, FrameMeasurer(AS_STORED, self._watch))
        opened.came, opened.damaged = self._arrived, self._damaged
        self._arrived = self._damaged = 0
        self._open = sorted([*self._open, opened], key=lambda o: o.span.start_ms)
        return opened

    def _close_finished(self, stream: str, at_ms: int) -> Iterator[CapturedClip]:
        """Yield the clips for which nothing more will arrive."""
        self._reached[stream] = max(at_ms, self._reached.get(stream, 0))
        low, high = min(self._reached.values()), max(self._reached.values())
        # Speech is recognised up to a rest after the clip.
        ahead = lookahead_ms(self._watch) if "audio" in self._reached else 0
        while self._open and max(low, high - _LATE_MS) >= self._open[0].span.end_ms + ahead:
            yield from self._close_first()

    def _close_first(self) -> Iterator[CapturedClip]:
        closing = self._open.pop(0)
        # Merge intervals that are less than ``gap_ms`` apart, in order.
        covered: list[tuple[int, int]] = []
        for start, end in sorted(closing.covered):
            if covered and start - covered[-1][1] < self._stream.gap_ms:
                covered[-1] = (covered[-1][0], max(end, covered[-1][1]))
            else:
                covered.append((start, end))
        # Without the time that is missing at both ends.
        start, end = covered[0][0], covered[-1][1]
        span, gap = closing.span, self._stream.gap_ms
        span = TimeSpan.of(
            start if start - span.start_ms >= gap else span.start_ms,
            end if span.end_ms - end >= gap else span.end_ms,
        )
        # The gaps before and within the clip, with reasons.
        ends = [self._end, *(end for _, end in covered[:-1])]
        starts = [span.start_ms, *(start for start, _ in covered[1:])]
        pairs = zip(ends, starts, strict=True)
        gaps = tuple(
            Gap(
                span=TimeSpan.of(end, start),
                reason=next(
                    (
                        reason
                        for at, reason in self._breaks
                        if end - self._stream.gap_ms <= at <= start
                    ),
                    GapReason.SILENT,
                ),
            )
            for end, start in pairs
            if start - end >= self._stream.gap_ms
        )
        self.pending_gaps = (*self.pending_gaps, *gaps)
        tally = PictureTally(came=closing.came, damaged=closing.damaged, sampled=closing.sampled)
        self._end = span.end_ms
        late = span.end_ms - self._stream.gap_ms
        self._breaks = [found for found in self._breaks if found[0] >= late]
        try:
            if span.length_ms >= self._stream.least_ms:
                yield self._captured(closing, span, tally)
            else:
                missed = Gap(span=span, reason=GapReason.SHORT, frames=tally.came)
                self.pending_gaps = (*self.pending_gaps, missed)
        finally:
            closing.measurer.close()

    def _captured(self, closing: _OpenClip, span: TimeSpan, tally: PictureTally) -> CapturedClip:
        if closing.audio is not None:
            closing.audio.finish()
        frames = closing.measurer.collect()
        has_audio = closing.audio is not None and closing.audio.has_samples
        error = None if frames or has_audio else "nothing of what came of this clip decodes"
        clip, gaps = Clip(index=self._next, span=span), self.pending_gaps
        self._next, self.pending_gaps = self._next + 1, ()
        samples, following = self._samples(closing, span), NO_SOUND
        if self._open and self._open[0].span.start_ms == span.end_ms:
            ahead = TimeSpan.of(span.end_ms, span.end_ms + lookahead_ms(self._watch))
            following = self._samples(self._open[0], ahead)
        raw = RawClip(clip, frames, samples, error=error, following=following)
        return CapturedClip(raw, tally, closing.level, gaps)

    def _samples(self, closing: _OpenClip, span: TimeSpan) -> Samples:
        if closing.audio is None:
            return NO_SOUND
        hz, start = self._watch.audio_hz, closing.span.start_ms
        low, high = (span.start_ms - start) * hz // 1000, (span.end_ms - start) * hz // 1000
        return closing.audio.samples[low:high].copy()


# Buffers captured clips that wait to be perceived: a bounded queue that drops none silently.

_POLL_S = 0.5
"""A thread that waits wakes so often, so that Ctrl-C is heard everywhere."""


class ClipBuffer:
    """Passes clips from the thread that reads a source to the one that perceives them."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._clips: deque[CapturedClip] = deque()
        self._changed = Condition()
        self._ended = self._cancelled = False

    def __len__(self) -> int:
        return len(self._clips)

    def put(self, clip: CapturedClip, *, wait: bool) -> bool:
        """Add a clip; return False if cancelled, or full and ``wait`` is False."""
        with self._changed:
            while wait and len(self._clips) >= self._capacity and not self._cancelled:
                self._changed.wait(_POLL_S)
            if self._cancelled or len(self._clips) >= self._capacity:
                return False
            self._clips.append(clip)
            self._changed.notify_all()
            return True

    def get(self, *, wait: bool) -> CapturedClip | None:
        """Remove and return the oldest clip.

        Returns:
            None at the end, or where the buffer is empty and ``wait`` is False. After ``finish``,
            the remaining clips are still returned.
        """
        with self._changed:
            while wait and not self._clips and not self._ended:
                self._changed.wait(_POLL_S)
            if not self._clips:
                return None
            self._changed.notify_all()
            return self._clips.popleft()

    def finish(self) -> None:
        """Mark the end: no clip will be added."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """Discard the clips and refuse further ones: nobody will read them."""
        with self._changed:
            self._cancelled = True
            self._clips.clear()
            self._changed.notify_all()


# Chooses the degradation level of the next clip of a live source.

_EASY_CLIPS = 3
"""Clips in a row that must be easy before more is looked at again."""
_MAX_EASY_CLIPS = 96


@dataclass
class DegradationPolicy:
    """Raises the level while clips arrive faster than they are perceived, and lowers it otherwise.

    Where going down was too soon, twice as many clips must be easy before it is tried again.
    """

    level: int = 0
    _easy: int = 0
    _easy_needed: int = _EASY_CLIPS
    _just_lowered: bool = False

    def update(self, took_ms: int, length_ms: int, waiting: int) -> int:
        if took_ms > length_ms or waiting > 1:
            if self._just_lowered:
                self._easy_needed = min(2 * self._easy_needed, _MAX_EASY_CLIPS)
            self.level = min(self.level + 1, len(LEVELS) - 1)
            self._easy, self._just_lowered = 0, False
        elif waiting == 0 and took_ms * 2 < length_ms:
            self._easy += 1
            if self.level and self._easy >= self._easy_needed:
                self.level, self._easy, self._just_lowered = self.level - 1, 0, True
        else:
            self._easy = 0
        return self.level


def subsample_frames(frames: Sequence[Frame], sampled_level: int, level: int) -> list[Frame]:
    """Select the frames of ``level`` from frames that were sampled at ``sampled_level``.

    A cut between two of them is not lost: each frame has the greatest change since the one before.
    """
    step = max(1, round(LEVELS[sampled_level].share / LEVELS[level].share))
    merged = []
    for at in range(0, len(frames), step):
        run = frames[max(0, at - step + 1) : at + 1]
        most = max(run, key=lambda frame: frame.metrics.change).metrics
        metrics = replace(
            frames[at].metrics, change=most.change, layout_similarity=most.layout_similarity
        )
        merged.append(replace(frames[at], metrics=metrics))
    return merged
