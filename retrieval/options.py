"""Which option of a question memory supports, from the relevance of every cell to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import ascii_uppercase

import numpy as np

from domain.asking import Evidence
from domain.search import OptionSupport, Weighed
from retrieval.moments import line_scores, lines_of
from retrieval.query_context import QueryContext
from retrieval.ranking import PreparedQuestion
from retrieval.relevance import Relevance, Scores
from retrieval.view_index import ViewIndex

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
    """The field with every option's cells moved by half the log of its share.

    So the moments that come first are those that speak for the option that will be chosen.
    """
    if not len(field.options):
        return field
    share = shares(soft_maximum(field.support))
    lean = 0.5 * np.log(np.maximum(share, 1e-3))
    return replace(field, options=field.options + lean[:, None])


def supports(
    view: ViewIndex, asked: PreparedQuestion, field: Relevance, refs: int = 3
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
            evidence=_refs(view, asked, field, number, refs),
        )
        for number, (option, share) in enumerate(zip(asked.options, shares(scores), strict=True))
    )


def _refs(
    view: ViewIndex, asked: PreparedQuestion, field: Relevance, option: int, refs: int
) -> tuple[str, ...]:
    cells = np.argsort(-field.options[option], kind="stable")[: 4 * refs]
    lines = lines_of(view, cells)
    scores = line_scores(view, asked, field, lines)[option]
    best: dict[int, str] = {}
    for i in np.argsort(-scores, kind="stable"):
        best.setdefault(int(view.cell_of_line[lines[i]]), f"m{view.line(int(lines[i]))[1].id}")
    return tuple(best.values())[:refs]


DIGITS = 4
"""Decimals that are kept of a score."""
TEMPERATURE = 8.0
"""Deviations added up, divided by this, are about logits: fitted on judged answers, and rounded."""


def temperature(sought: QueryContext) -> float:
    """What scores of this search are divided by to be logits; 1 where they are logits already."""
    field = sought.field
    return 1.0 if field is None or field.line_support is not None else TEMPERATURE


def weighed(sought: QueryContext, evidence: Sequence[Evidence]) -> tuple[Weighed, ...]:
    """Lines and images by option; a segment is weighed by its lines, where they are found.

    A line by its clip and its own words, an image by its clip.
    """
    if sought.field is None or not sought.asked.options:
        return ()
    lines = _lines(sought, [e for e in evidence if e.ref.startswith("m")])
    images = [
        (e.ref, _of_clip(sought, e))
        for e in evidence
        if e.ref.startswith("k") and e.clip is not None
    ]
    told = [*lines, *((ref, scores) for ref, scores in images if scores is not None)]
    return tuple(
        Weighed(ref=ref, scores=tuple(round(float(s), DIGITS) for s in scores))
        for ref, scores in told
    )


def _lines(sought: QueryContext, evidence: Sequence[Evidence]) -> list[tuple[str, Scores]]:
    view, field = sought.panorama, sought.field
    ids = np.array(sorted(int(e.ref[1:]) for e in evidence), dtype=np.int64)
    numbers = np.flatnonzero(np.isin(view.ids, ids))
    if field is None or not len(numbers):
        return []
    cells = view.cell_of_line[numbers]
    actors = field.support[:, cells] - field.options[:, cells]
    scores = line_scores(view, sought.asked, field, numbers) + actors
    return [(f"m{view.ids[n]}", scores[:, i]) for i, n in enumerate(numbers)]


def _of_clip(sought: QueryContext, image: Evidence) -> Scores | None:
    field = sought.field
    cells = sought.panorama.cells_of(image.video, [image.clip or 0])
    if field is None or not len(cells):
        return None
    return np.asarray(field.support[:, cells[0]], dtype=np.float64)
