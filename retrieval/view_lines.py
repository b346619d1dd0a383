"""Lines in the order of time, classified by kind."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.memories import MemorySource
from domain.time import TimeSpan
from retrieval.line_set import LineSet
from store.queries.search import StoredLine

SPOKEN = frozenset({MemorySource.SAID, MemorySource.SUBTITLE})
WRITTEN = frozenset({MemorySource.CAPTION, MemorySource.MODEL})
"""Sources of lines that describe the video: captions, and a model."""
_PRESENCE = re.compile(r"(?:<\w+>(?:, | and )?)+ (?:is|are) on screen(?: together)?\.")


@dataclass(frozen=True)
class ViewLine:
    """A line in view: its video, its number in the line set, and its row."""

    video: str
    number: int
    line: StoredLine

    @property
    def span(self) -> TimeSpan:
        """The span of the line."""
        return TimeSpan.of(self.line.start_ms, max(self.line.start_ms, self.line.end_ms))

    @property
    def spoken(self) -> bool:
        """Whether the line is speech."""
        return self.line.source in SPOKEN and not self.names_somebody

    @property
    def presence(self) -> bool:
        """Whether the line only states who is on screen."""
        return self.line.source == MemorySource.SEEN and bool(_PRESENCE.fullmatch(self.line.text))

    @property
    def names_somebody(self) -> bool:
        """Whether the line notes that a person's name was said or shown."""
        return bool(re.match(r"<\w+> is named ", self.line.text))

    @property
    def described(self) -> bool:
        """Whether the line describes the video beyond who is on screen."""
        seen = self.line.source == MemorySource.SEEN and not self.presence
        return self.line.source in WRITTEN or seen


def in_time_order(lines: LineSet) -> tuple[ViewLine, ...]:
    """Return every line, by video of the view, time and id."""
    rows = [ViewLine(video, number, row) for number, (video, row) in enumerate(lines.rows)]
    scopes = {scope.video: number for number, scope in enumerate(lines.scopes)}
    return tuple(sorted(rows, key=lambda row: (scopes[row.video], row.line.start_ms, row.line.id)))
