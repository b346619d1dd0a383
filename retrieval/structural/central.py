"""What a view is about: the sentences that are closest to all the others."""

from __future__ import annotations

import numpy as np

from domain.search import Finding, Structure
from retrieval.heuristics.answer_sentence import whole
from retrieval.query_context import QueryContext
from retrieval.structural.ends import part_of
from retrieval.view_lines import ViewLine

QUOTED = 3
"""Sentences that are quoted."""
WORDS = 6
"""A line of fewer words does not tell what something is about."""
MOST = 2_000
"""Lines that are compared, evenly over the view."""
ALIKE = 0.8
"""Sentences closer than this say the same."""


def central(context: QueryContext, asked: Structure) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """The most central sentences in the order of time; None where there is nothing to quote."""
    rows = _candidates(context.rows)
    if not rows:
        return None
    chosen = _most_central(context, rows)
    known = {row.number: row for row in context.rows}
    groups, used = [], set[int]()
    for row in sorted(chosen, key=lambda one: (one.video, one.line.start_ms)):
        numbers = whole(context.all_lines, row.number).lines if row.spoken else (row.number,)
        fresh = [known[n] for n in numbers if n in known and n not in used]
        used |= set(numbers)
        groups += [fresh] if fresh else []
    parts = tuple(part_of(context, group) for group in groups)
    found = Finding(asks=asked.asks, parts=parts, exact=False)
    return found, tuple(row for group in groups for row in group)


def _candidates(rows: tuple[ViewLine, ...]) -> list[ViewLine]:
    """Lines that say something, what is said or described before what is read."""
    telling = [
        row for row in rows if len(row.line.text.split()) >= WORDS and not row.names_somebody
    ]
    said = [row for row in telling if row.spoken or row.described]
    some = said or [row for row in telling if not row.presence]
    some = some or [row for row in rows if row.spoken or row.described]
    return some[:: max(1, -(-len(some) // MOST))]


def _most_central(context: QueryContext, rows: list[ViewLine]) -> list[ViewLine]:
    """Lines whose vectors are closest to the mean of all, none that says the same as another."""
    numbers = np.array(sorted(row.number for row in rows), dtype=np.int64)
    vectors = context.all_lines.arrays.vectors[numbers]
    by_number = {row.number: row for row in rows}
    scores = vectors @ vectors.mean(axis=0)
    chosen: list[int] = []
    for place in np.argsort(-scores, kind="stable").tolist():
        if all(float(vectors[place] @ vectors[other]) < ALIKE for other in chosen):
            chosen.append(place)
        if len(chosen) == QUOTED:
            break
    return [by_number[int(numbers[place])] for place in chosen]
