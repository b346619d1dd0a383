"""Lines in the order of time, with what kind of line each is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.memories import MemorySource
from domain.time import TimeSpan
from retrieval.line_set import LineSet
from store.queries.search import StoredLine

SPOKEN = frozenset({MemorySource.SAID, MemorySource.SUBTITLE})
WRITTEN = frozenset({MemorySource.CAPTION, MemorySource.MODEL})
"""Sources of lines in which somebody describes what is to be seen."""
_PRESENCE = re.compile(r"(?:<\w+>(?:, | and )?)+ (?:is|are) on screen(?: together)?\.")


@dataclass(frozen=True)
class ViewLine:
    """A line in force: its video, its number in the view, and what was stored."""

    video: str
    number: int
    line: StoredLine

    @property
    def ref(self) -> str:
        """How it is cited."""
        return f"m{self.line.id}"

    @property
    def span(self) -> TimeSpan:
        """When it holds."""
        return TimeSpan.of(self.line.start_ms, max(self.line.start_ms, self.line.end_ms))

    @property
    def spoken(self) -> bool:
        """Whether somebody said it."""
        return self.line.source in SPOKEN and not self.names_somebody

    @property
    def sound(self) -> bool:
        """Whether it says that something besides speech is heard."""
        return self.line.source == MemorySource.SOUND

    @property
    def presence(self) -> bool:
        """Whether it only says who is in view."""
        return self.line.source == MemorySource.SEEN and bool(_PRESENCE.fullmatch(self.line.text))

    @property
    def names_somebody(self) -> bool:
        """Whether it is the note that somebody's name was said or shown."""
        return bool(re.match(r"<\w+> is named ", self.line.text))

    @property
    def described(self) -> bool:
        """Whether it tells what is to be seen beyond who is there."""
        seen = self.line.source == MemorySource.SEEN and not self.presence
        return self.line.source in WRITTEN or seen


def in_time_order(lines: LineSet) -> tuple[ViewLine, ...]:
    """Return every line, video after video, by time."""
    rows = [ViewLine(video, number, row) for number, (video, row) in enumerate(lines.rows)]
    scopes = {scope.video: number for number, scope in enumerate(lines.scopes)}
    return tuple(sorted(rows, key=lambda one: (scopes[one.video], one.line.start_ms, one.line.id)))
