"""Which option of a question memory supports, from the relevance of every cell to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase

import numpy as np

from domain.asking import Evidence
from domain.search import OptionSupport, Weighed
from retrieval.line_set import Scores
from retrieval.moments import line_scores
from retrieval.query_context import QueryContext
from retrieval.ranking import PreparedQuestion, SearchedLines
from retrieval.relevance import Relevance

TOP_CELLS = 50
"""Cells that have a say: repeated support counts, a long tail does not."""


def soft_maximum(scores: Scores, top: int = TOP_CELLS) -> Scores:
    """The log of the mean exponential of the ``top`` highest of each row, (O, N) to (O,)."""
    best = np.sort(scores, axis=1)[:, -top:]
    peak = best.max(axis=1)
    return np.asarray(peak + np.log(np.exp(best - peak[:, None]).mean(axis=1)))


def shares(scores: Scores) -> Scores:
    """Positive shares that sum to 1, falling with the distance from the best, shape (O,)."""
    weight = np.exp(scores - scores.max())
    return np.asarray(weight / weight.sum())


def leaning(field: Relevance) -> Relevance:
    """Return relevance with every option's cells moved by half the log of its share.

    So the moments that come first are those that speak for the option that will be chosen.
    """
    if not len(field.options):
        return field
    share = shares(soft_maximum(field.support))
    lean = 0.5 * np.log(np.maximum(share, 1e-3))
    return replace(field, options=field.options + lean[:, None])


def supports(
    found: SearchedLines, asked: PreparedQuestion, field: Relevance, refs: int = 3
) -> tuple[OptionSupport, ...]:
    """How well memory supports each option, with the ``refs`` best lines for each."""
    if not asked.options:
        return ()
    scores = soft_maximum(field.support)
    return tuple(
        OptionSupport(
            letter=ascii_uppercase[number],
            text=option,
            score=float(scores[number]),
            share=float(share),
            evidence=_refs(found, field, number, refs),
        )
        for number, (option, share) in enumerate(zip(asked.options, shares(scores), strict=True))
    )


def _refs(found: SearchedLines, relevance: Relevance, option: int, refs: int) -> tuple[str, ...]:
    cells = np.argsort(-relevance.options[option], kind="stable")[: 4 * refs]
    lines = found.lines.lines_of(cells.tolist())
    scores = line_scores(found, relevance, lines)[option]
    best: dict[int, str] = {}
    for i in np.argsort(-scores, kind="stable"):
        cell = int(found.lines.cell_of_line[lines[i]])
        best.setdefault(cell, f"m{found.lines.arrays.id[lines[i]]}")
    return tuple(best.values())[:refs]


DIGITS = 4
"""Decimals that are kept of a score."""
TEMPERATURE = 8.0
"""Deviations added up, divided by this, are about logits: fitted on judged answers, and rounded."""


def temperature(context: QueryContext) -> float:
    """Return what scores of this search are divided by to be logits; 1 where they are already."""
    found = context.relevance
    return 1.0 if found is None or found.line_support is not None else TEMPERATURE


def weighed(context: QueryContext, evidence: Sequence[Evidence]) -> tuple[Weighed, ...]:
    """Weigh lines and images by option; a segment is weighed by its lines, where they are found.

    A line by its clip and its own words, an image by its clip.
    """
    if context.relevance is None or not context.asked.options:
        return ()
    lines = _lines(context, context.relevance, [e for e in evidence if e.ref.startswith("m")])
    images = [
        (e.ref, _of_clip(context, context.relevance, e))
        for e in evidence
        if e.ref.startswith("k") and e.clip is not None
    ]
    every = [*lines, *((ref, scores) for ref, scores in images if scores is not None)]
    return tuple(
        Weighed(ref=ref, scores=tuple(round(float(s), DIGITS) for s in scores))
        for ref, scores in every
    )


def _lines(
    context: QueryContext, relevance: Relevance, evidence: Sequence[Evidence]
) -> list[tuple[str, Scores]]:
    lines = context.lines
    numbers = lines.lines_with([int(e.ref[1:]) for e in evidence])
    cells = lines.cell_of_line[numbers]
    actors = relevance.support[:, cells] - relevance.options[:, cells]
    scores = line_scores(context.found, relevance, numbers) + actors
    return [(f"m{lines.arrays.id[n]}", scores[:, i]) for i, n in enumerate(numbers)]


def _of_clip(context: QueryContext, relevance: Relevance, image: Evidence) -> Scores | None:
    cells = context.lines.cells_of(image.video, [image.clip or 0])
    return relevance.support[:, cells[0]] if len(cells) else None
