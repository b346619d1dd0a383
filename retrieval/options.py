"""Support of a question's options by memory, from the relevance of every cell to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase

import numpy as np

from domain.asking import Evidence
from domain.search import OptionSupport, Weighed
from retrieval.line_ranking import line_scores
from retrieval.line_set import Scores
from retrieval.query_context import QueryContext
from retrieval.ranking import CandidateLines, PreparedQuestion
from retrieval.relevance import Relevance

TOP_CELLS = 50
"""Number of best cells that count: repeated support counts, a long tail does not."""


def top_log_mean_exp(scores: Scores, top: int = TOP_CELLS) -> Scores:
    """Return the log of the mean exponential of the ``top`` highest scores, (O, N) to (O,)."""
    best = np.sort(scores, axis=1)[:, -top:]
    peak = best.max(axis=1)
    return np.asarray(peak + np.log(np.exp(best - peak[:, None]).mean(axis=1)))


def softmax(scores: Scores) -> Scores:
    """Return the softmax of scores, shape (O,)."""
    weight = np.exp(scores - scores.max())
    return np.asarray(weight / weight.sum())


def favour_supported(relevance: Relevance) -> Relevance:
    """Add half the log of each option's share to its scores in all cells.

    So evidence for the option that will be chosen ranks first.
    """
    if not len(relevance.options):
        return relevance
    share = softmax(top_log_mean_exp(relevance.support))
    lean = 0.5 * np.log(np.maximum(share, 1e-3))
    return replace(relevance, options=relevance.options + lean[:, None])


def supports(
    candidates: CandidateLines, question: PreparedQuestion, relevance: Relevance, refs: int = 3
) -> tuple[OptionSupport, ...]:
    """Return the support of each option, with the ``refs`` best lines for each."""
    if not question.options:
        return ()
    scores = top_log_mean_exp(relevance.support)
    return tuple(
        OptionSupport(
            letter=ascii_uppercase[number],
            text=option,
            score=float(scores[number]),
            share=float(share),
            evidence=_refs(candidates, relevance, number, refs),
        )
        for number, (option, share) in enumerate(
            zip(question.options, softmax(scores), strict=True)
        )
    )


def _refs(
    candidates: CandidateLines, relevance: Relevance, option: int, refs: int
) -> tuple[str, ...]:
    cells = np.argsort(-relevance.options[option], kind="stable")[: 4 * refs]
    lines = candidates.lines.lines_of(cells.tolist())
    scores = line_scores(candidates, relevance, lines)[option]
    best: dict[int, str] = {}
    for i in np.argsort(-scores, kind="stable"):
        cell = int(candidates.lines.cell_of_line[lines[i]])
        best.setdefault(cell, f"m{candidates.lines.arrays.id[lines[i]]}")
    return tuple(best.values())[:refs]


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
