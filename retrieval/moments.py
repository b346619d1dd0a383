"""From cells to lines: the narrow moments inside the clips that a question is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.ports import Reranker
from retrieval.ranking import PreparedQuestion
from retrieval.relevance import Relevance, Scores
from retrieval.reranking import NEAREST, WORST, bonus
from retrieval.video_index import Ints
from retrieval.view_index import ViewIndex

CELLS = 100
"""Cells looked into for lines, best first."""
LINE = 0.5
"""Weight of a line's own cosines beside the score of its cell, in standard deviations."""


STRENGTH, STRONGEST = 0.25, 1.0
"""Standard deviations that a fact gains with the log of its weight, and at most."""


@dataclass(frozen=True)
class MomentScore:
    """A line of the view (its number) with its score; ``option`` is the one it fits best."""

    line: int
    cell: int
    score: float
    option: int | None = None


def lines_of(view: ViewIndex, cells: Ints) -> Ints:
    """The numbers of the lines of these cells that are in force, in the order of the cells."""
    if not len(cells):
        return np.zeros(0, dtype=np.int64)
    lines, _ = view.all_lines_of(cells)
    return np.asarray(lines[~view.hidden[lines]], dtype=np.int64)


def line_scores(view: ViewIndex, asked: PreparedQuestion, field: Relevance, lines: Ints) -> Scores:
    """Score of each line with each option, shape (O, L); (1, L) where there are no options.

    The cell's score, and half a weight for each cosine of the line itself.
    """
    if field.line_support is not None:
        return np.asarray(field.line_support[:, lines])
    cells = view.cell_of_line[lines]
    count = len(asked.options)
    wide = field.options[:, cells] if count else field.question[None, cells]
    own = field.standing(slice(0, 1), lines)
    if len(field.lines) > 1:
        statements = field.standing(slice(1, 1 + count), lines)
        own = own + statements + field.standing(slice(1 + count, None), lines)
    return np.asarray(wide + LINE * own, dtype=np.float64)


def best_moments(
    view: ViewIndex,
    asked: PreparedQuestion,
    field: Relevance,
    limit: int,
    reranker: Reranker | None = None,
) -> list[MomentScore]:
    """The best line of each of the best ``limit`` cells, best first.

    With a ``reranker`` the nearest lines are read again: that finds the line with the answer to an
    open question in it. Where options tell, it was measured to add nothing.
    """
    field.sharpen_best()
    cells = np.argsort(-field.cells, kind="stable")[:CELLS]
    lines = lines_of(view, cells)
    if not len(lines):
        return []
    scores = line_scores(view, asked, field, lines)
    if reranker is not None:
        scores = _read_again(view, asked, lines, scores, reranker)
    return _one_a_cell(view, lines, scores, limit, bool(asked.options))


def _read_again(
    view: ViewIndex, asked: PreparedQuestion, lines: Ints, scores: Scores, reranker: Reranker
) -> Scores:
    """The nearest lines with what reading them adds; the rest with the least it can add."""
    nearest = np.argsort(-scores.max(axis=0), kind="stable")[:NEAREST]
    added = np.full(len(lines), WORST)
    added[nearest] = bonus(view, asked, lines[nearest], reranker)
    return np.asarray(scores + added)


def _one_a_cell(
    view: ViewIndex, lines: Ints, scores: Scores, limit: int, options: bool
) -> list[MomentScore]:
    best, chosen = scores.max(axis=0), scores.argmax(axis=0)
    found: dict[int, MomentScore] = {}
    for i in np.argsort(-best, kind="stable"):
        line, cell = int(lines[i]), int(view.cell_of_line[lines[i]])
        if cell not in found:
            option = int(chosen[i]) if options else None
            found[cell] = MomentScore(line, cell, float(best[i]), option)
        if len(found) == limit:
            break
    return list(found.values())


def strengthened(moments: Sequence[MomentScore], again: Mapping[int, int]) -> list[MomentScore]:
    """Moments with what the weight of a fact adds, best first (SPEC section 1, semantic memory).

    Args:
        moments: best first; equal ones keep their order.
        again: how often the fact of a line was learned again, by the line's number.
    """
    gained = [
        replace(m, score=m.score + min(STRONGEST, STRENGTH * math.log1p(again.get(m.line, 0))))
        for m in moments
    ]
    return sorted(gained, key=lambda moment: -moment.score)
