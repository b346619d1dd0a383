"""Central sentences: the lines closest to the centroid of a view, as a summary."""

from __future__ import annotations

import numpy as np

from domain.search import Finding, Structure
from retrieval.heuristics.answer_sentence import complete_sentences
from retrieval.query_context import QueryContext
from retrieval.structural.beginning_end import part_of
from retrieval.view_lines import ViewLine

QUOTED = 3
"""Number of sentences."""
WORDS = 6
"""Minimum number of words of a line."""
MAX_LINES = 2_000
"""Maximum number of lines compared, evenly over the view."""
ALIKE = 0.8
"""Cosine above which two sentences are near-duplicates."""


def central_sentences(
    context: QueryContext, structure: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Return the most central sentences in the order of time; None without any."""
    rows = _candidates(context.rows)
    if not rows:
        return None
    chosen = _most_central(context, rows)
    known = {row.number: row for row in context.rows}
    groups, used = [], set[int]()
    for row in sorted(chosen, key=lambda row: (row.video, row.line.start_ms)):
        numbers = (
            complete_sentences(context.all_lines, row.number).lines if row.spoken else (row.number,)
        )
        fresh = [known[n] for n in numbers if n in known and n not in used]
        used |= set(numbers)
        groups += [fresh] if fresh else []
    parts = tuple(part_of(context, group) for group in groups)
    finding = Finding(asks=structure.asks, parts=parts, exact=False)
    return finding, tuple(row for group in groups for row in group)


def _candidates(rows: tuple[ViewLine, ...]) -> list[ViewLine]:
    """Choose long enough lines: speech and descriptions, else text read on screen."""
    long_enough = [
        row for row in rows if len(row.line.text.split()) >= WORDS and not row.names_somebody
    ]
    content = [row for row in long_enough if row.spoken or row.described]
    selected = content or [row for row in long_enough if not row.presence]
    selected = selected or [row for row in rows if row.spoken or row.described]
    return selected[:: max(1, -(-len(selected) // MAX_LINES))]


def _most_central(context: QueryContext, rows: list[ViewLine]) -> list[ViewLine]:
    """Return the lines closest to the centroid, without near-duplicates."""
    numbers = np.array(sorted(row.number for row in rows), dtype=np.int64)
    vectors = context.all_lines.arrays.vectors[numbers]
    by_number = {row.number: row for row in rows}
    scores = vectors @ vectors.mean(axis=0)
    chosen: list[int] = []
    for position in np.argsort(-scores, kind="stable").tolist():
        if all(float(vectors[position] @ vectors[earlier]) < ALIKE for earlier in chosen):
            chosen.append(position)
        if len(chosen) == QUOTED:
            break
    return [by_number[int(numbers[position])] for position in chosen]
