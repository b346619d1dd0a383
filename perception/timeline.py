"""Maps the time stamps of a source to video time.

Time stamps of a live source, and of files that were joined, leap, wrap around and begin anew.
Within a connection or a file they are believed as long as they go on from one another; where they
do not, time goes on where the clock on the wall is, but never before what came already. So video
time never runs backwards, a break of a live source takes as long on the timeline as it took, and
a mere leap of the stamps takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_MAX_REORDER_MS = 500
"""Stamps of one stream may be out of order by so much."""


@dataclass
class Timeline:
    """Maps media time to video time, in milliseconds; ``latest_ms`` is the latest so far.

    Stamps that leap further than ``jump_ms`` are of a new clock. ``clocks`` are those that began:
    each by the video time at which it did, and what is added to its stamps.
    """

    jump_ms: int
    latest_ms: int = 0
    clocks: list[tuple[int, int]] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=list)
    _last_ms: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """Forget the offsets: time stamps of a new connection are unrelated."""
        self._offsets.clear()
        self._last_ms.clear()

    def to_video_ms(self, stream: str, media_ms: int, now_ms: int) -> int:
        """Return the video time of time stamp ``media_ms`` that arrived at video time ``now_ms``.

        May lie up to ``jump_ms`` before what a connection began with, since sound and pictures
        do not begin together.
        """
        placed = (media_ms + offset for offset in self._offsets)
        at = next((at for at in placed if self._fits(stream, at)), None)
        if at is None:
            at = max(self.latest_ms, now_ms)
            self.clocks.append((at, at - media_ms))
            # Of the clock before, what the other stream still brings is placed by it.
            self._offsets = [at - media_ms, *self._offsets[:1]]
            self._last_ms.pop(stream, None)
        self._last_ms[stream] = max(at, self._last_ms.get(stream, at))
        self.latest_ms = max(self.latest_ms, at)
        return at

    def _fits(self, stream: str, at: int) -> bool:
        first = (
            self._last_ms[stream] - _MAX_REORDER_MS
            if stream in self._last_ms
            else self.clocks[-1][0] - self.jump_ms
        )
        return first <= at <= self.latest_ms + self.jump_ms
