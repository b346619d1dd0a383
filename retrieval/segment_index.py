"""The segments of all videos of a view, laid out together for scoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain

import numpy as np

from retrieval.event_search import EventsInView, SegmentInView, holding, word_scores
from retrieval.quantized import Coded, RoundedRows, of_coded
from retrieval.relevance import Scores
from retrieval.segment_max import NumberRuns
from retrieval.video_index import Floats, Ints
from retrieval.view_index import ViewIndex

OF_WORDS = 128
"""Of so many words it is kept which segments have them."""
MANY = 1_000
"""From so many segments in view on, their cosines are looked into only where it matters."""


@dataclass(frozen=True, eq=False)
class SegmentIndex:
    """S segments, video by video.

    ``cells`` (K,) are those of their clips, one segment after the other, and the number of cells in
    view for clips without lines; ``owners`` are the segments that have clips in view, ``starts``
    where the clips of each begin.
    """

    views: tuple[EventsInView, ...]
    found: tuple[SegmentInView, ...]
    cells: Ints
    owners: Ints
    starts: Ints
    cell_count: int

    @cached_property
    def places(self) -> dict[int, int]:
        """Where each segment is, by id."""
        return {one.id: place for place, one in enumerate(self.found)}

    def best(self, scores: Scores) -> Scores:
        """The best of its clips' scores (N,) for each segment, (S,); the lowest for none."""
        every = np.append(scores, scores.min())
        found, best = np.full(len(self.found), every[-1]), np.empty(len(self.owners))
        self._runs.largest(every[self.cells], best)
        found[self.owners] = best
        return found

    @cached_property
    def _runs(self) -> NumberRuns:
        return NumberRuns.of(self.starts, len(self.cells))

    def words(self, query: Sequence[str]) -> Floats:
        """The share of the query's rarer words that each segment has, in [0, 1], (S,)."""
        return word_scores(len(self.found), query, self._holding)

    @cached_property
    def _holding(self) -> Callable[[str], Ints]:
        """Which segments have a word."""
        return lru_cache(OF_WORDS)(partial(holding, self.views))

    def cells_of(self, place: int) -> Ints:
        """The cells of one segment."""
        number = int(np.searchsorted(self.owners, place))
        if number == len(self.owners) or self.owners[number] != place:
            return self.cells[:0]
        ends = self.starts[number + 1 : number + 2]
        cells = self.cells[self.starts[number] : int(ends[0]) if len(ends) else None]
        return np.asarray(cells[cells < self.cell_count])

    def cosines(self, query: Floats) -> tuple[Floats, float]:
        """Of each segment with a query (D,), (S,), and how far they are off at most, nearly always.

        Zeros where another model embedded them.
        """
        sizes = {view.vectors.shape[1] for view in self._filled}
        if len(self.found) < MANY or sizes != {len(query)}:
            every = [self._exact(view, slice(None), query) for view in self.views]
            return np.concatenate([np.zeros(0, dtype=np.float32), *every]), 0.0
        found = np.empty(len(self.found), dtype=np.float32)
        self._rounded.cosines(query, found)
        return found, self._rounded.off(len(found))

    @cached_property
    def _rounded(self) -> RoundedRows:
        """The vectors of all, of the same size, for a first pass."""
        every = zip(*(view.coded for view in self._filled), strict=True)
        return of_coded(Coded(*map(np.concatenate, every)), self._filled[0].vectors.shape[1])

    @cached_property
    def _filled(self) -> list[EventsInView]:
        """Those that have segments: without any, vectors have no size."""
        return [view for view in self.views if view.found]

    def exact_cosines(self, places: Ints, query: Floats) -> Floats:
        """Of some segments with a query (D,), (P,)."""
        found = np.zeros(len(places), dtype=np.float32)
        cuts = np.cumsum([0, *(len(view.found) for view in self.views)])
        whose = np.searchsorted(cuts, places, side="right") - 1
        for number in np.unique(whose):
            theirs = np.flatnonzero(whose == number)
            own = places[theirs] - cuts[number]
            found[theirs] = self._exact(self.views[number], own, query)
        return found

    @staticmethod
    def _exact(view: EventsInView, own: Ints | slice, query: Floats) -> Floats:
        vectors = view.vectors[own]
        if vectors.shape[1] != len(query):
            return np.zeros(len(vectors), dtype=np.float32)
        return np.asarray(np.vecdot(vectors, query), dtype=np.float32)


def woven(view: ViewIndex, views: Sequence[EventsInView]) -> SegmentIndex:
    """Lay out the segments of a view's videos, which come in the order of its parts."""
    sizes = [len(one.found) for one in views]
    lengths = [len(one.clips) for one in views]
    none = np.zeros(0, dtype=np.int64)
    return SegmentIndex(
        views=tuple(views),
        found=tuple(chain.from_iterable(one.found for one in views)),
        cells=np.concatenate([none, *(_cells(view, n, one.clips) for n, one in enumerate(views))]),
        owners=_shifted([one.owners for one in views], sizes),
        starts=_shifted([one.starts for one in views], lengths),
        cell_count=view.cell_count,
    )


def _cells(view: ViewIndex, number: int, clips: Ints) -> Ints:
    """The cells of clips of one part; the number of all cells for clips without lines."""
    part = view.parts[number]
    held = part.index.clips[: part.cells]
    places = np.minimum(np.searchsorted(held, clips), part.cells - 1)
    own = int(view.cell_offsets[number]) + places
    return np.asarray(np.where(held[places] == clips, own, view.cell_count), dtype=np.int64)


def _shifted(numbers: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """Numbers within each video as numbers within all of them."""
    offsets = np.cumsum([0, *sizes])[:-1]
    shifted = [own + offset for own, offset in zip(numbers, offsets, strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *shifted])
