"""Evidence made of the lines of a view, and what structural searches ask of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Evidence
from domain.time import TimeSpan
from retrieval.people_in_query import line_text
from retrieval.query_context import QueryContext
from retrieval.view_lines import ViewLine

GAP_MS = 3_000
"""Moments that are this close are one stretch."""


def rows_with(context: QueryContext, words: Iterable[str]) -> list[ViewLine]:
    """Return the lines of the clips in which any of these search terms is, by time."""
    wanted, lines = set(words), context.all_lines
    cells = {n for n, own in enumerate(lines.cell_terms) if not wanted.isdisjoint(own)}
    return [row for row in context.rows if int(lines.cell_of_line[row.number]) in cells]


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
            text=line_text(row.line, sought.people.names(row.video)),
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
