"""Relevance over very many lines: a first pass over rounded vectors, then exact scores of the best.

Every cell is scored from rounded vectors, which are off by no more than is known. What that could
put among the best is scored again from the vectors themselves, and so is whatever else a mode looks
into (``sharpen``). Of a full pass only means and deviations differ, in their last digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.codes import asked_codes
from memory.retrieval.field import NOISE, Field, Scores
from memory.retrieval.index import Floats, Ints
from memory.retrieval.panorama import Panorama

SURE = 100
"""So many of the best cells are exactly the best."""
NEAREST = 10
"""So many of the nearest lines are exactly the nearest."""


@dataclass(frozen=True)
class Level:
    """A signal's mean over the view, and what one of it adds to the score of a cell."""

    mean: float
    weight: float

    def of(self, values: Floats) -> Scores:
        """What values add to the score of their cells."""
        return np.asarray((values.astype(np.float64) - self.mean) * self.weight)


def _level(values: Floats, weight: float) -> Level:
    spread = float(values.std())
    return Level(float(values.mean()), 0.0 if spread < NOISE else weight / (spread + 1e-6))


@dataclass(frozen=True, eq=False, kw_only=True)
class CoarseField(Field):
    """A field whose cells are exact where they were sharpened, (N,) flags in ``sharp``.

    ``rest`` (N,) is what words and time add, ``near`` and ``whole`` what cosines do. ``off`` is how
    far the score of another cell is from the exact one at most, ``lines_off`` the cosine of a line.
    """

    view: Panorama
    query: Floats
    rest: Scores
    near: Level
    whole: Level
    sharp: NDArray[np.bool_]
    off: float
    lines_off: float

    def exact(self, cells: Ints) -> NDArray[np.bool_]:
        """See ``Field``."""
        return np.asarray(self.sharp[cells])

    def sharpen(self, cells: Ints) -> bool:
        """See ``Field``."""
        blurred = np.unique(cells[~self.sharp[cells]])
        if not len(blurred):
            return False
        lines, starts = self.view.all_lines_of(blurred)
        cosines = np.vecdot(self.view.vectors_of(lines), self.query)
        cosines[self.view.hidden[lines]] = -1.0
        self.lines[0, lines] = cosines
        near = np.maximum.reduceat(cosines, starts)
        whole = np.vecdot(self.view.directions_of(blurred), self.query)
        self.question[blurred] = self.near.of(near) + self.whole.of(whole) + self.rest[blurred]
        self.sharp[blurred] = True
        return True

    def sharpen_best(self) -> None:
        """See ``Field``: ``SURE`` cells, ``NEAREST`` lines, and all that might be among them."""
        near = np.maximum.reduceat(self.lines[0], self.view.first)
        best = _within(self.question, SURE, self.margin)
        self.sharpen(np.flatnonzero(best | _within(near, NEAREST, 2 * self.lines_off)))

    @property
    def margin(self) -> float:
        """What is further behind than this is truly behind."""
        return 2 * self.off


def coarse_field(
    view: Panorama, query: Floats, rest: Scores, line: float, cell: float
) -> CoarseField:
    """Score every cell of a view by its closest line and as a whole, and by ``rest`` (N,).

    Args:
        view: at least one cell.
        query: the question's unit vector (D,).
        rest: what else adds to the score of each cell.
        line: weight of the closest line.
        cell: weight of the cell as a whole.
    """
    asked = asked_codes(query)
    lines, lines_off = view.rounded_lines(asked)
    whole, cells_off = view.rounded_cells(asked)
    near = np.maximum.reduceat(lines, view.first)
    by_line, by_cell = _level(near, line), _level(whole, cell)
    return CoarseField(
        question=by_line.of(near) + by_cell.of(whole) + rest,
        options=np.zeros((0, len(rest))),
        support=np.zeros((0, len(rest))),
        lines=lines[None],
        view=view,
        query=query,
        rest=rest,
        near=by_line,
        whole=by_cell,
        sharp=np.zeros(len(rest), dtype=np.bool_),
        off=by_line.weight * lines_off + by_cell.weight * cells_off,
        lines_off=lines_off,
    )


def _within(scores: NDArray[np.floating], count: int, margin: float) -> NDArray[np.bool_]:
    """Which scores are among the ``count`` highest, or behind them by no more than ``margin``."""
    place = max(0, len(scores) - count)
    return np.asarray(scores >= np.partition(scores, place)[place] - margin)
