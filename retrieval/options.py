"""Support of a question's options by memory, from the relevance of every cell to each."""

from __future__ import annotations

from collections.abc import Sequence

from domain.asking import Evidence
from domain.search import Weighed
from retrieval.lines import Scores
from retrieval.query_context import QueryContext
from retrieval.ranking import line_scores
from retrieval.relevance import Relevance

DIGITS = 4
"""Decimals of a recorded score."""
TEMPERATURE = 8.0
"""Divisor from sums of standard deviations to logits: fitted on judged answers, rounded."""


def temperature(context: QueryContext) -> float:
    """Return the divisor from scores of this search to logits; 1 if they are logits."""
    relevance = context.relevance
    return 1.0 if relevance is None or relevance.line_support is not None else TEMPERATURE


def weigh_evidence(context: QueryContext, evidence: Sequence[Evidence]) -> tuple[Weighed, ...]:
    """Score lines and images by option; segments are left out.

    A line is scored by its clip and its own cosines, an image by its clip.
    """
    if context.relevance is None or not context.question.options:
        return ()
    lines = _lines(context, context.relevance, [e for e in evidence if e.ref.startswith("m")])
    images = [
        (e.ref, _of_clip(context, context.relevance, e))
        for e in evidence
        if e.ref.startswith("k") and e.clip is not None
    ]
    scored = [*lines, *((ref, scores) for ref, scores in images if scores is not None)]
    return tuple(
        Weighed(ref=ref, scores=tuple(round(float(s), DIGITS) for s in scores))
        for ref, scores in scored
    )


def _lines(
    context: QueryContext, relevance: Relevance, evidence: Sequence[Evidence]
) -> list[tuple[str, Scores]]:
    lines = context.lines
    numbers = lines.lines_with([int(e.ref[1:]) for e in evidence])
    cells = lines.cell_of_line[numbers]
    actors = relevance.support[:, cells] - relevance.options[:, cells]
    scores = line_scores(context.candidates, relevance, numbers) + actors
    return [(f"m{lines.arrays.id[n]}", scores[:, i]) for i, n in enumerate(numbers)]


def _of_clip(context: QueryContext, relevance: Relevance, image: Evidence) -> Scores | None:
    cells = context.lines.cells_of(image.video, [image.clip or 0])
    return relevance.support[:, cells[0]] if len(cells) else None
