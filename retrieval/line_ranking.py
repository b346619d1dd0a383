"""Ranking of lines within the best cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from retrieval.line_set import Ints, Scores, search_text
from retrieval.ranking import CandidateLines, PreparedQuestion
from retrieval.relevance import Relevance, standardise
from retrieval.terms import terms
from retrieval.word_scores import WordScores

CELLS = 100
"""Number of best cells whose lines are ranked."""
WORDS = 1.0
"""Weight of the words of a line by itself, in standard deviations."""
LINE = 0.5
"""Weight of a line's cosines relative to the score of its cell."""


STRENGTH, STRONGEST = 0.25, 1.0
"""Standard deviations added for the log of a fact's strength, and their maximum."""


@dataclass(frozen=True)
class RankedLine:
    """A line (its number in the set), its cell, its score, and the option it supports most."""

    line: int
    cell: int
    score: float
    option: int | None = None


def line_scores(candidates: CandidateLines, relevance: Relevance, lines: Ints) -> Scores:
    """Score each line with each option, shape (O, L); (1, L) where there are no options.

    A line's score is its cell's score plus ``LINE`` times its standardised cosines.
    """
    if relevance.line_support is not None:
        return np.asarray(relevance.line_support[:, lines])
    cells = candidates.lines.cell_of_line[lines]
    cell_scores = relevance.options if len(relevance.options) else relevance.question[None]
    return np.asarray(
        cell_scores[:, cells] + LINE * relevance.cosine_scores(lines), dtype=np.float64
    )


def best_lines(
    candidates: CandidateLines,
    question: PreparedQuestion,
    relevance: Relevance,
    limit: int,
    words: Sequence[str] = (),
) -> list[RankedLine]:
    """Return the best line of each of the best ``limit`` cells, best first.

    With ``words``, a line that has them in itself counts for more than one whose clip does.
    """
    cells = np.argsort(-relevance.cells, kind="stable")[:CELLS]
    lines = candidates.lines.lines_of(cells.tolist())
    if not len(lines):
        return []
    scores = line_scores(candidates, relevance, lines)
    if words:
        numbers = lines.tolist()
        candidates.lines.read_lines(numbers)
        texts = [terms(search_text(candidates.lines.line(n)[1])) for n in numbers]
        scores = scores + WORDS * standardise(WordScores(texts).of(words))
    options = bool(question.options)
    best, chosen = scores.max(axis=0), scores.argmax(axis=0)
    best_by_cell: dict[int, RankedLine] = {}
    for i in np.argsort(-best, kind="stable"):
        line, cell = int(lines[i]), int(candidates.lines.cell_of_line[lines[i]])
        if cell not in best_by_cell:
            option = int(chosen[i]) if options else None
            best_by_cell[cell] = RankedLine(line, cell, float(best[i]), option)
        if len(best_by_cell) == limit:
            break
    return list(best_by_cell.values())


def add_strength(lines: Sequence[RankedLine], confirmations: Mapping[int, int]) -> list[RankedLine]:
    """Add the strength of semantic memories to scores and sort again (section 1, entity graph).

    Args:
        lines: Lines, best first; equal ones keep their order.
        confirmations: How often the fact of a line was confirmed, by the line's number.
    """
    strengthened = [
        replace(
            line,
            score=line.score
            + min(STRONGEST, STRENGTH * math.log1p(confirmations.get(line.line, 0))),
        )
        for line in lines
    ]
    return sorted(strengthened, key=lambda line: -line.score)
