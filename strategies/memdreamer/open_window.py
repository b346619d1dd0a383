"""The window of a video that is not cut into episodes yet, clip by clip; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from domain.built import WatchedClip
from domain.memories import Memory, MemoryKind, MemorySource
from domain.time import TimeSpan

MAX_PAUSE_MS = 120_000
"""Where nothing was watched for longer, an episode ends."""

_Beginning = tuple[MemorySource, str | None, str, int]
_KINDS = frozenset({MemoryKind.EPISODIC, MemoryKind.CHARACTER})


class OpenWindow:
    """The lines since the last episode's end.

    Args:
        end_ms: the end of the last episode; None before the first clip.
        earlier: the clips that were built last.
    """

    def __init__(self, end_ms: int | None, earlier: Iterable[WatchedClip]) -> None:
        self._begin_ms = end_ms
        self.seen_ms = end_ms or 0
        self._lines: list[Memory] = []
        for clip in earlier:
            if end_ms is None or clip.span.end_ms > end_ms:
                self.add(clip)

    def pauses_before(self, clip: WatchedClip) -> bool:
        """Check whether so long was not watched before a clip that an episode ends there."""
        return self._begin_ms is not None and clip.span.start_ms - self.seen_ms > MAX_PAUSE_MS

    def add(self, clip: WatchedClip) -> None:
        """Add the next clip; lines that go on in it take the place of those that they go on."""
        if self._begin_ms is None or self.pauses_before(clip):
            self._begin_ms = clip.span.start_ms
            self._lines = []
        new = [line for line in clip.lines if line.kind in _KINDS]
        later = {_beginning(line): line for line in new}
        self._lines = [line for line in self._lines if not _goes_on(line, later)]
        self._lines += [line for line in new if line.span.start_ms >= self._begin_ms]
        self.seen_ms = max(self.seen_ms, clip.span.end_ms)

    @property
    def span(self) -> TimeSpan:
        """From the last episode's end to the last clip's."""
        begin = self._begin_ms or 0
        return TimeSpan.of(begin, max(begin, self.seen_ms))

    def lines(self, span: TimeSpan) -> Iterator[Memory]:
        """Yield the lines that begin in a part of it, in order of time."""
        for line in sorted(self._lines, key=_order):
            if span.start_ms <= line.span.start_ms < span.end_ms:
                yield line

    def begin_at(self, time_ms: int) -> None:
        """Forget what is before a time: the end of the last episode."""
        self._begin_ms = time_ms
        self._lines = [line for line in self._lines if line.span.start_ms >= time_ms]


def _order(line: Memory) -> tuple[int, int, int]:
    return line.span.start_ms, line.span.end_ms, line.id


def _beginning(line: Memory) -> _Beginning:
    """Return what a line has in common with the same line, gone on in the next clip.

    Speech goes on in further words, text on screen is the same.
    """
    words = "" if line.source is MemorySource.SAID else line.text
    return line.source, line.speaker, words, line.span.start_ms


def _goes_on(line: Memory, later: Mapping[_Beginning, Memory]) -> bool:
    """Check whether a line goes on in a later clip: then that line takes its place."""
    same = later.get(_beginning(line))
    return same is not None and same.clip != line.clip and line.kind is MemoryKind.EPISODIC
