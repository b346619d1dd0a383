"""Relevance over very many lines: a first pass over rounded vectors, then exact scores of the best.

Every cell is scored from rounded vectors, of which it is known how far they may be off. What that
could put among the best is scored again from the vectors themselves, and so is whatever else a mode
looks into (``sharpen``). Of a full pass only means and deviations differ, in their last digits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models import large_pages
from models.onnx import map_in_threads, threads_allowed
from retrieval.cell_means import wholes
from retrieval.quantized import off_by
from retrieval.relevance import Relevance, Scores, SignalScale, level
from retrieval.video_index import Floats, Ints
from retrieval.view_index import VideoPart, ViewIndex

SURE = 100
"""So many of the best cells are exactly the best."""
NEAREST = 10
"""So many of the nearest lines are exactly the nearest."""
BESIDE = 50_000
"""From so many lines in view on, videos are read beside each other: less is not worth threads."""
LONG = 250_000
"""From so many lines in view on, large pages are asked for: with less they save nothing."""


@dataclass(frozen=True, eq=False)
class FirstPass:
    """Cosines with every line (M,), the closest of each cell and the cell as a whole (N,), nearly.

    ``lines_off`` and ``whole_off`` are how far they are off at most, nearly always.
    """

    lines: Floats
    near: Floats
    whole: Floats
    lines_off: float
    whole_off: float


@contextmanager
def first_pass(view: ViewIndex, query: Floats) -> Iterator[Callable[[], FirstPass]]:
    """Read rounded vectors beside what goes on meanwhile; what it gives waits for the end of it.

    Args:
        view: at least one cell.
        query: the question's unit vector (D,).
    """
    lines, off = np.empty(view.line_count, dtype=np.float32), view.kept(_off)
    left = deque(zip(view.parts, np.split(lines, view.line_offsets[1:-1]), strict=True))

    def read() -> None:
        for part, own in _taken(left):
            part.index.rounded_lines.cosines(query, own)

    beside = threads_allowed() - 1 if len(lines) >= BESIDE else 0
    with ThreadPoolExecutor(threads_allowed(), thread_name_prefix="search") as pool:
        begun = [pool.submit(read) for _ in range(beside)]

        def ended() -> FirstPass:
            read()
            for one in begun:
                one.result()
            if len(lines) >= LONG:
                view.kept(_want_large_pages)
            # Small steps on several threads at once would wait for each other most of the time.
            return _passed(view, lines, *off)

        yield ended


def _taken(left: deque[tuple[VideoPart, Floats]]) -> Iterator[tuple[VideoPart, Floats]]:
    """What is left, one after the other; others may take of it meanwhile."""
    with suppress(IndexError):
        while True:
            yield left.popleft()


def _want_large_pages(_: ViewIndex) -> None:
    """For the rows of a view, once all are packed: those of short videos are when first read."""
    large_pages.OF_PROCESS.want()


def _off(view: ViewIndex) -> tuple[float, float]:
    """How far rounded lines and cells of a view are off; they are rounded here the first time."""
    lines, cells = zip(*map_in_threads(_off_of, view.parts), strict=True)
    return max(lines), max(cells)


def _off_of(part: VideoPart) -> tuple[float, float]:
    rows = part.index.rounded_lines
    lost, of_lines = rows.lost[: part.lines], rows.off(part.lines)
    # What is lost of one line points elsewhere than what is lost of another, but where they are
    # alike: then a cell is off as its lines are.
    of_cells = np.sqrt(part.wholes(lost * lost) / part.index.magnitudes[: part.cells])
    return of_lines, max(of_lines, off_by(of_cells, part.index.line_vectors.width))


def _passed(view: ViewIndex, lines: Floats, lines_off: float, whole_off: float) -> FirstPass:
    """What cosines with lines (M,) tell of the cells; hidden ones are told to be far in them."""
    whole = wholes(lines, view.first, view.follows, view.magnitudes)
    lines[view.hidden_lines] = -1.0
    near = np.empty(view.cell_count, dtype=np.float32)
    view.runs.largest(lines, near)
    return FirstPass(lines, near, whole, lines_off, whole_off)


@dataclass(frozen=True, eq=False, kw_only=True)
class CoarseField(Relevance):
    """A field whose cells are exact where they were sharpened, (N,) flags in ``sharp``.

    ``rest`` (N,) is what words and time add, ``by_line`` and ``by_cell`` what cosines do. ``off``
    is how far the score of another cell is from the exact one at most, nearly always;
    ``lines_off`` the cosine of a line.
    """

    view: ViewIndex
    query: Floats
    rest: Scores
    by_line: SignalScale
    by_cell: SignalScale
    sharp: NDArray[np.bool_]
    lines_off: float

    def exact(self, cells: Ints) -> NDArray[np.bool_]:
        """See ``Relevance``."""
        return np.asarray(self.sharp[cells])

    def sharpen(self, cells: Ints) -> bool:
        """See ``Relevance``."""
        blurred = np.unique(cells[~self.sharp[cells]])
        if not len(blurred):
            return False
        near, whole = self._looked_into(blurred)
        self.near[0, blurred] = near
        self.question[blurred] = self.by_line.of(near) + self.by_cell.of(whole) + self.rest[blurred]
        self.sharp[blurred] = True
        return True

    def _looked_into(self, blurred: Ints) -> tuple[Floats, Floats]:
        """The closest line of these cells and the cells as a whole, exactly."""
        view, cells = self.view, self.view.with_last(blurred)
        lines, starts = view.all_lines_of(cells)
        cosines = np.vecdot(view.vectors_of(lines), self.query)
        own = np.isin(cells, blurred, assume_unique=True)
        whole = wholes(cosines, starts, own & view.follows[cells], view.magnitudes[cells])
        cosines[view.hidden[lines]] = -1.0
        of_own = np.repeat(own, np.diff(starts, append=len(lines)))
        self.lines[0, lines[of_own]] = cosines[of_own]
        return np.maximum.reduceat(cosines, starts)[own], whole[own]

    def sharpen_best(self) -> None:
        """See ``Relevance``: ``SURE`` cells, ``NEAREST`` lines, and all that may be among them."""
        for scores, count, off in (
            (self.question, SURE, self.off),
            (self.near[0], NEAREST, self.lines_off),
        ):
            # The best of those that seem so are known exactly: nothing that is certainly behind
            # the last of them can be among the best.
            seeming = best_of(scores, count)
            self.sharpen(seeming)
            self.sharpen(np.flatnonzero(scores >= scores[seeming].min() - off))


def coarse_field(
    view: ViewIndex, query: Floats, rest: Scores, passed: FirstPass, line: float, cell: float
) -> CoarseField:
    """Score every cell of a view by its closest line and as a whole, and by ``rest`` (N,).

    Args:
        view: at least one cell.
        query: the question's unit vector (D,).
        rest: what else adds to the score of each cell.
        passed: a first pass over the view.
        line: weight of the closest line.
        cell: weight of the cell as a whole.
    """
    by_line, by_cell = level(passed.near, line), level(passed.whole, cell)
    question = rest + by_line.of(passed.near)
    question += by_cell.of(passed.whole)
    # Of a cell with one line both are off by the same.
    off = by_line.weight * passed.lines_off + by_cell.weight * passed.whole_off
    return CoarseField(
        question=question,
        options=np.zeros((0, len(rest))),
        support=np.zeros((0, len(rest))),
        lines=passed.lines[None],
        near=passed.near[None],
        view=view,
        query=query,
        rest=rest,
        by_line=by_line,
        by_cell=by_cell,
        sharp=np.zeros(len(rest), dtype=np.bool_),
        off=off,
        lines_off=passed.lines_off,
    )


def best_of(scores: NDArray[np.floating], count: int) -> Ints:
    """The numbers of the ``count`` highest scores, or of all; in no order."""
    return np.asarray(np.argpartition(-scores, min(count, len(scores)) - 1)[:count])
