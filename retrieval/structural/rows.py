"""The lines of a view in the order of time, and evidence made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.asking import Evidence
from domain.memories import MemorySource
from domain.time import TimeSpan
from retrieval.people_in_query import told
from retrieval.query_context import QueryContext
from retrieval.view_index import ViewIndex
from store.queries.search import StoredLine

SPOKEN = frozenset({MemorySource.SAID, MemorySource.SUBTITLE})
WRITTEN = frozenset({MemorySource.CAPTION, MemorySource.MODEL})
"""Sources of lines in which somebody describes what is to be seen."""
GAP_MS = 3_000
"""Moments that are this close are one stretch."""
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


def rows_of(view: ViewIndex) -> tuple[ViewLine, ...]:
    """Every line in force, video after video, by time."""
    return view.kept(_rows)


def _rows(view: ViewIndex) -> tuple[ViewLine, ...]:
    found: list[ViewLine] = []
    for offset, part in zip(view.line_offsets.tolist(), view.parts, strict=False):
        hidden = part.hidden
        own = [
            ViewLine(part.scope.video, offset + place, line)
            for place, line in enumerate(part.index.lines[: part.lines])
            if not hidden[place]
        ]
        found += sorted(own, key=lambda row: (row.line.start_ms, row.line.id))
    return tuple(found)


def rows_with(view: ViewIndex, words: Iterable[str]) -> list[ViewLine]:
    """The lines of the clips in which any of these search terms is, by time."""
    postings = (view.posting(word) for word in set(words))
    cells = {int(cell) for one in postings if one is not None for cell in one.cells}
    of_line = view.cell_of_line
    return [row for row in rows_of(view) if int(of_line[row.number]) in cells]


def evidence_of(
    sought: QueryContext, rows: Iterable[ViewLine], score: float
) -> tuple[Evidence, ...]:
    """These lines as evidence, each once, all with the same score."""
    once = {row.number: row for row in rows}
    return tuple(
        Evidence(
            ref=row.ref,
            video=row.video,
            span=row.span,
            text=told(row.line, sought.cast.names(row.video)),
            score=score,
            clip=row.line.clip,
        )
        for row in once.values()
    )


def joined(spans: Iterable[TimeSpan], gap_ms: int = GAP_MS) -> tuple[TimeSpan, ...]:
    """Spans in time, those that touch or nearly touch as one."""
    found: list[TimeSpan] = []
    for span in sorted(spans, key=lambda one: (one.start_ms, one.end_ms)):
        if found and span.start_ms - found[-1].end_ms <= gap_ms:
            end = max(found[-1].end_ms, span.end_ms)
            found[-1] = TimeSpan.of(found[-1].start_ms, end)
        else:
            found.append(span)
    return tuple(found)


def length_ms(spans: Sequence[TimeSpan]) -> int:
    """How long spans are in all."""
    return sum(span.end_ms - span.start_ms for span in spans)
