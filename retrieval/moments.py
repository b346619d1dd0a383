"""From cells to lines: the narrow moments inside the clips that a question is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.ports import Reranker
from retrieval.line_set import Ints, Scores
from retrieval.ranking import PreparedQuestion, SearchedLines
from retrieval.relevance import Relevance
from retrieval.reranking import NEAREST, WORST, bonus

CELLS = 100
"""Cells looked into for lines, best first."""
LINE = 0.5
"""Weight of a line's own cosines beside the score of its cell, in standard deviations."""


STRENGTH, STRONGEST = 0.25, 1.0
"""Standard deviations that a fact gains with the log of its weight, and at most."""


@dataclass(frozen=True)
class MomentScore:
    """A line (its number in the set) with its score; ``option`` is the one it fits best."""

    line: int
    cell: int
    score: float
    option: int | None = None


def line_scores(found: SearchedLines, relevance: Relevance, lines: Ints) -> Scores:
    """Score each line with each option, shape (O, L); (1, L) where there are no options.

    The cell's score, and half a weight for each cosine of the line itself.
    """
    if relevance.line_support is not None:
        return np.asarray(relevance.line_support[:, lines])
    cells = found.lines.cell_of_line[lines]
    wide = relevance.options if len(relevance.options) else relevance.question[None]
    return np.asarray(wide[:, cells] + LINE * relevance.own(lines), dtype=np.float64)


def best_moments(
    found: SearchedLines,
    asked: PreparedQuestion,
    relevance: Relevance,
    limit: int,
    reranker: Reranker | None = None,
) -> list[MomentScore]:
    """Return the best line of each of the best ``limit`` cells, best first.

    With a ``reranker`` the nearest lines are read again: that finds the line with the answer to an
    open question in it. Where options tell, it was measured to add nothing.
    """
    cells = np.argsort(-relevance.cells, kind="stable")[:CELLS]
    lines = found.lines.lines_of(cells.tolist())
    if not len(lines):
        return []
    scores = line_scores(found, relevance, lines)
    if reranker is not None:
        scores = _read_again(found, asked, lines, scores, reranker)
    return _one_a_cell(found, lines, scores, limit, bool(asked.options))


def _read_again(
    found: SearchedLines,
    asked: PreparedQuestion,
    lines: Ints,
    scores: Scores,
    reranker: Reranker,
) -> Scores:
    """The nearest lines with what reading them adds; the rest with the least it can add."""
    nearest = np.argsort(-scores.max(axis=0), kind="stable")[:NEAREST]
    added = np.full(len(lines), WORST)
    added[nearest] = bonus(found.lines, asked, lines[nearest], reranker)
    return np.asarray(scores + added)


def _one_a_cell(
    found: SearchedLines, lines: Ints, scores: Scores, limit: int, options: bool
) -> list[MomentScore]:
    best, chosen = scores.max(axis=0), scores.argmax(axis=0)
    moments: dict[int, MomentScore] = {}
    for i in np.argsort(-best, kind="stable"):
        line, cell = int(lines[i]), int(found.lines.cell_of_line[lines[i]])
        if cell not in moments:
            option = int(chosen[i]) if options else None
            moments[cell] = MomentScore(line, cell, float(best[i]), option)
        if len(moments) == limit:
            break
    return list(moments.values())


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
