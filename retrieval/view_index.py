"""What a view sees, as one sequence of cells and lines over all its videos."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import NDArray

from domain.memories import MemoryView, Scope
from retrieval.cell_means import wholes
from retrieval.heuristics.actors import ActorLines
from retrieval.line_vectors import fetch_together
from retrieval.postings import Posting
from retrieval.segment_max import NumberRuns
from retrieval.time_grid import TimeGrid, grid_of
from retrieval.video_index import Floats, Ints, VideoIndex
from store.queries.search import CellRow, Matrix, StoredLine

APART = 1_000
"""Grid steps between the videos of a view, so that no neighbourhood crosses from one to another."""


@dataclass(frozen=True, eq=False)
class VideoPart:
    """The first ``cells`` cells and ``lines`` lines of one video's index."""

    index: VideoIndex
    scope: Scope
    cells: int
    lines: int

    @property
    def as_of_ms(self) -> int:
        """The end of the last cell in view."""
        return self.index.cells[self.cells - 1].end_ms if self.cells else 0

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Lines that are superseded as of the view, shape (lines,)."""
        return np.asarray(self.index.gone[: self.lines] <= self.scope.last_clip)

    def wholes(self, cosines: Floats) -> Floats:
        """Cosines with cells as a whole, (..., cells), of those with lines, none hidden."""
        index, own = self.index, slice(self.cells)
        return wholes(cosines, index.first[own], index.follows[own], index.magnitudes[own])


@dataclass(frozen=True, eq=False)
class PlacedPosting(Posting):
    """Where a term is, and where its cells are on the view's grid, (K,)."""

    places: Ints


Kept = TypeVar("Kept")
Given = TypeVarTuple("Given")

_OF_TERMS = 128
"""So many things that were worked out of terms are kept."""


@dataclass(frozen=True, eq=False)
class ViewIndex:
    """N cells and M lines in view, part after part. Serves many questions; copies no vectors."""

    parts: tuple[VideoPart, ...]
    _kept: dict[tuple[object, tuple[object, ...]], Any] = field(default_factory=dict)
    _of_terms: dict[tuple[object, ...], tuple[Any]] = field(default_factory=dict)

    def kept(self, work: Callable[[ViewIndex, *Given], Kept], *given: *Given) -> Kept:
        """What ``work`` makes of this view, worked out once."""
        if (work, given) not in self._kept:
            self._kept[work, given] = work(self, *given)
        found: Kept = self._kept[work, given]
        return found

    def of_term(
        self, work: Callable[[ViewIndex, str, *Given], Kept], term: str, *given: *Given
    ) -> Kept:
        """What ``work`` makes of a term in this view; what it made of the last ones is kept."""
        key = work, term, given
        held = self._of_terms.get(key)
        if held is None:
            held = (work(self, term, *given),)
            if len(self._of_terms) >= _OF_TERMS:
                self._of_terms.clear()
            self._of_terms[key] = held
        found: Kept = held[0]
        return found

    @cached_property
    def cell_offsets(self) -> Ints:
        """The first cell of each part, and N at the end."""
        return np.cumsum([0, *(part.cells for part in self.parts)])

    @cached_property
    def line_offsets(self) -> Ints:
        """The first line of each part, and M at the end."""
        return np.cumsum([0, *(part.lines for part in self.parts)])

    @property
    def cell_count(self) -> int:
        """N."""
        return int(self.cell_offsets[-1])

    @property
    def line_count(self) -> int:
        """M."""
        return int(self.line_offsets[-1])

    @cached_property
    def _bounds(self) -> Ints:
        """The first line of each cell, and M at the end, shape (N + 1,)."""
        parts = self._with(self.line_offsets)
        first = (part.index.first[: part.cells] + offset for part, offset in parts)
        return np.concatenate([*first, self.line_offsets[-1:]])

    @property
    def first(self) -> Ints:
        """The first line of each cell, shape (N,)."""
        return self._bounds[:-1]

    @cached_property
    def runs(self) -> NumberRuns:
        """The lines of each cell, to find the closest of each."""
        return NumberRuns.of(self.first, self.line_count)

    @cached_property
    def keys(self) -> Ints:
        """Grid numbers, ascending, the videos far apart, shape (N,)."""
        keys, base = [], 0
        for part in self.parts:
            keys.append(part.index.keys[: part.cells] + base)
            base = int(keys[-1][-1]) + APART if part.cells else base
        return self._joined(keys)

    @cached_property
    def grid(self) -> TimeGrid:
        """Where each cell is in time."""
        return grid_of(self.keys)

    @cached_property
    def ids(self) -> Ints:
        """The id of each line, shape (M,)."""
        return self._joined([part.index.ids[: part.lines] for part in self.parts])

    def cells_of(self, video: str, clips: Iterable[int]) -> Ints:
        """The numbers of those cells of these clips that are in view, ascending."""
        number, wanted = self._numbers.get(video), np.unique(np.fromiter(clips, np.int64))
        if number is None:
            return wanted[:0]
        part = self.parts[number]
        held = part.index.clips[: part.cells]
        places = np.minimum(np.searchsorted(held, wanted), part.cells - 1)
        found = places[held[places] == wanted] + self.cell_offsets[number]
        return np.asarray(found, dtype=np.int64)

    def scope(self, video: str) -> Scope | None:
        """What is in view of a video; None where that is nothing."""
        number = self._numbers.get(video)
        return None if number is None else self.parts[number].scope

    def lines_with(self, video: str, ids: Collection[int]) -> Ints:
        """The numbers of those lines of a video in view that have one of these ids, ascending."""
        number = self._numbers[video]
        part, offset = self.parts[number], int(self.line_offsets[number])
        wanted = np.fromiter(ids, np.int64, len(ids))
        own = np.flatnonzero(np.isin(part.index.ids[: part.lines], wanted) & ~part.hidden)
        return np.asarray(own + offset, dtype=np.int64)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each video's part that has cells."""
        return {part.scope.video: number for number, part in enumerate(self.parts) if part.cells}

    @cached_property
    def lengths(self) -> Floats:
        """Terms in each cell, shape (N,)."""
        return np.concatenate([part.index.lengths[: part.cells] for part in self.parts])

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Lines that are superseded as of the view, shape (M,)."""
        return np.concatenate([part.hidden for part in self.parts])

    @cached_property
    def hidden_lines(self) -> Ints:
        """The numbers of lines that are superseded as of the view."""
        return np.flatnonzero(self.hidden)

    @cached_property
    def cell_of_line(self) -> Ints:
        """The cell of each line, shape (M,)."""
        return np.repeat(np.arange(self.cell_count), np.diff(self._bounds))

    @cached_property
    def actors(self) -> ActorLines:
        """Whose lines are whose, of those in view."""
        first, *rest = (part.index.actors.first(part.lines) for part in self.parts)
        for offset, more in zip(self.line_offsets[1:], rest, strict=False):
            first = first.followed_by(more, int(offset))
        return first

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The middle of every cell in seconds, shape (N,)."""
        return np.concatenate([np.zeros(0), *(p.index.times[: p.cells] for p in self.parts)])

    def lines_of_cell(self, cell: int) -> range:
        """The numbers of a cell's lines."""
        return range(int(self._bounds[cell]), int(self._bounds[cell + 1]))

    def all_lines_of(self, cells: Ints) -> tuple[Ints, Ints]:
        """The numbers of the lines of these cells, in their order, and where each cell's begin."""
        starts = self._bounds[cells]
        counts = self._bounds[cells + 1] - starts
        places = np.cumsum(counts) - counts
        return np.arange(counts.sum()) + np.repeat(starts - places, counts), places

    def line(self, number: int) -> tuple[str, StoredLine]:
        """The video and row of a line."""
        place = int(np.searchsorted(self.line_offsets, number, side="right")) - 1
        part = self.parts[place]
        return part.scope.video, part.index.lines[number - int(self.line_offsets[place])]

    def sides_of(self, lines: Ints) -> Ints:
        """When some lines (ascending) start and end in milliseconds, shape (2, K)."""
        own = self._own(lines, self.line_offsets)
        return np.concatenate([index.sides[:, of_it] for index, of_it in own], axis=1)

    def cell(self, number: int) -> tuple[str, CellRow]:
        """The video and row of a cell."""
        place = int(np.searchsorted(self.cell_offsets, number, side="right")) - 1
        part = self.parts[place]
        return part.scope.video, part.index.cells[number - int(self.cell_offsets[place])]

    def posting(self, term: str) -> PlacedPosting | None:
        """Where a term is, within the view."""
        return self.of_term(ViewIndex._posting, term)

    def _posting(self, term: str) -> PlacedPosting | None:
        cuts = [self._cut(part, term, offset) for part, offset in self._with(self.cell_offsets)]
        found = [posting for posting in cuts if posting is not None]
        if not found:
            return None
        cells = self._joined([posting.cells for posting in found])
        counts = np.concatenate([one.counts for one in found])
        return PlacedPosting(cells, counts, self.grid.places[cells])

    @staticmethod
    def _cut(part: VideoPart, term: str, offset: int) -> Posting | None:
        posting = part.index.postings.get(term)
        if posting is None:
            return None
        whole = part.cells == len(part.index.cells)
        stop = len(posting.cells) if whole else int(np.searchsorted(posting.cells, part.cells))
        return Posting(posting.cells[:stop] + offset, posting.counts[:stop]) if stop else None

    def cosines(self, queries: Matrix) -> tuple[Floats, Floats]:
        """Of Q unit vectors (Q, D) with every line (Q, M) and every cell as a whole (Q, N).

        Hidden lines have -1.
        """
        every = [_cosines(queries, part.index.vectors[: part.lines]) for part in self.parts]
        cells = [part.wholes(lines) for part, lines in zip(self.parts, every, strict=True)]
        lines = np.concatenate(every, axis=1)
        lines[:, self.hidden_lines] = -1.0
        return lines, np.concatenate(cells, axis=1)

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Which cells have one just before them, (N,)."""
        return np.concatenate([part.index.follows[: part.cells] for part in self.parts])

    @cached_property
    def magnitudes(self) -> Floats:
        """See ``wholes``, (N,)."""
        return np.concatenate([part.index.magnitudes[: part.cells] for part in self.parts])

    def with_last(self, cells: Ints) -> Ints:
        """These cells and those just before them, ascending."""
        return np.union1d(cells, cells[self.follows[cells]] - 1)

    def vectors_of(self, lines: Ints) -> Matrix:
        """The vectors of some lines (ascending), shape (K, D), fetched together where need be."""
        own = [(one.line_vectors, of_it) for one, of_it in self._own(lines, self.line_offsets)]
        fetch_together(own)
        return np.concatenate([vectors.there(of_it) for vectors, of_it in own])

    def _own(self, numbers: Ints, offsets: Ints) -> Iterator[tuple[VideoIndex, Ints]]:
        """What each index has of numbers, ascending, as it numbers it itself."""
        cuts = np.searchsorted(numbers, offsets)
        for i in np.flatnonzero(np.diff(cuts)).tolist():
            yield self.parts[i].index, numbers[cuts[i] : cuts[i + 1]] - offsets[i]

    def _with(self, offsets: Ints) -> list[tuple[VideoPart, int]]:
        return [(part, int(o)) for part, o in zip(self.parts, offsets, strict=False)]

    @staticmethod
    def _joined(arrays: Sequence[Ints]) -> Ints:
        return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)


FEW = 2
"""So many queries are multiplied row by row, which waits for memory alone."""


def _cosines(queries: Matrix, rows: Matrix) -> Floats:
    """Of Q unit vectors (Q, D) with N rows (N, D), shape (Q, N).

    A product of many rows with few is no faster on many threads, but waits for each of them: where
    the machine is busy, ten times as long as it takes.
    """
    if len(queries) > FEW:
        return np.asarray(queries @ rows.T)
    return np.stack([np.vecdot(rows, query) for query in queries])


def panorama(view: MemoryView, indexes: Sequence[VideoIndex]) -> ViewIndex:
    """What ``view`` sees of ``indexes``, which are its videos' in the same order.

    Videos of which nothing is in view yet, or whose vectors are of another size than the first
    one's (watched with another embedding), are left out.
    """
    parts: list[VideoPart] = []
    for scope, index in zip(view.scopes, indexes, strict=True):
        cells = index.visible(scope.last_clip)
        if cells and (not parts or _width(index) == _width(parts[0].index)):
            parts.append(VideoPart(index, scope, cells, index.line_count(cells)))
    return ViewIndex(tuple(parts))


def _width(index: VideoIndex) -> int:
    return index.line_vectors.width
