"""Helpers of structural searches: lines with terms, evidence of lines, and spans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Evidence
from domain.time import TimeSpan
from retrieval.people_in_query import line_text
from retrieval.query_context import QueryContext
from retrieval.view_lines import ViewLine

GAP_MS = 3_000
"""Spans with a shorter gap between them are merged."""


def rows_with_terms(context: QueryContext, words: Iterable[str]) -> list[ViewLine]:
    """Return the lines of clips with any of these search terms, by time."""
    wanted, lines = set(words), context.all_lines
    cells = {
        n for n, cell_terms in enumerate(lines.cell_terms) if not wanted.isdisjoint(cell_terms)
    }
    return [row for row in context.rows if int(lines.cell_of_line[row.number]) in cells]


def evidence_of(
    context: QueryContext, rows: Iterable[ViewLine], score: float
) -> tuple[Evidence, ...]:
    """Return lines as evidence without duplicates, all with the same score."""
    unique = {row.number: row for row in rows}
    return tuple(
        Evidence(
            ref=row.ref,
            video=row.video,
            span=row.span,
            text=line_text(row.line, context.people.names(row.video)),
            score=score,
            clip=row.line.clip,
        )
        for row in unique.values()
    )


def merge_spans(spans: Iterable[TimeSpan], gap_ms: int = GAP_MS) -> tuple[TimeSpan, ...]:
    """Merge spans that overlap or are at most ``gap_ms`` apart."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda span: (span.start_ms, span.end_ms)):
        if merged and span.start_ms - merged[-1].end_ms <= gap_ms:
            end = max(merged[-1].end_ms, span.end_ms)
            merged[-1] = TimeSpan.of(merged[-1].start_ms, end)
        else:
            merged.append(span)
    return tuple(merged)


def total_ms(spans: Sequence[TimeSpan]) -> int:
    """Return the total length of spans in milliseconds."""
    return sum(span.end_ms - span.start_ms for span in spans)
