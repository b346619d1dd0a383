"""The vectors of lines: held in memory, or fetched from the database where they are looked into.

The first search of a process looks into a few lines of very many: it fetches those alone. Where
many have been looked into, all are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from store.queries.search import Matrix

Ints = NDArray[np.int64]
Fetch = Callable[[Sequence[int]], tuple[Ints, Matrix]]
"""Gives those of some memories (by id) that have a vector, in no order, and the vectors."""

WHOLE = 8
"""Where more than one in so many lines of a video is wanted, all of them are fetched."""


def _nothing(_: Sequence[int]) -> tuple[Ints, Matrix]:
    raise AssertionError("of what is held, nothing is fetched")


class LineVectors:
    """M vectors of D numbers, (M, D). Any number of threads may look and fetch at once.

    Which of them is first does not matter: what they put in is the same.
    """

    def __init__(self, rows: Matrix, ids: Ints | None = None, fetch: Fetch | None = None) -> None:
        """``rows`` are the vectors; with ``ids`` (M,) and ``fetch``, room for them."""
        self._rows, self.fetch = rows, fetch or _nothing
        self._ids = np.zeros(0, dtype=np.int64) if ids is None else ids
        self._known = np.full(len(rows), fetch is None)
        self.held = fetch is None

    @property
    def width(self) -> int:
        """D."""
        return int(self._rows.shape[1])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def whole(self) -> Matrix:
        """All of them, shape (M, D)."""
        fetch_together([(self, np.arange(len(self)))])
        return self._rows

    def of(self, lines: Ints) -> Matrix:
        """Those of some lines, shape (K, D)."""
        fetch_together([(self, lines)])
        return np.asarray(self._rows[lines])

    def has(self, lines: Ints) -> bool:
        """Whether nothing is to be fetched for some lines."""
        return self.held or bool(self._known[lines].all())

    def missing(self, lines: Ints) -> Ints:
        """The ids of what is to be fetched for some lines: all of them, where many are wanted."""
        missing = np.unique(lines[~self._known[lines]])
        many = (np.count_nonzero(self._known) + len(missing)) * WHOLE > len(self)
        return self._ids[np.flatnonzero(~self._known) if len(missing) and many else missing]

    def fill(self, asked: Ints, found: Ints, vectors: Matrix) -> None:
        """Put in what was found for these ids; what was not has been deleted meanwhile."""
        own = np.isin(found, asked)
        if own.any():
            self._rows[self._lines(found[own])] = vectors[own]
        self._known[self._lines(asked)] = True
        self.held = bool(self._known.all())

    def _lines(self, ids: Ints) -> Ints:
        return self._by_id[np.searchsorted(self._ids, ids, sorter=self._by_id)]

    @cached_property
    def _by_id(self) -> Ints:
        return np.argsort(self._ids)


_fetching = Lock()


def fetch_together(wanted: Iterable[tuple[LineVectors, Ints]]) -> None:
    """Have some lines of videos of one database in memory, by one statement.

    One thread at a time: what one has fetched, the next need not.
    """
    looked = [(one, lines) for one, lines in wanted if not one.has(lines)]
    if not looked:
        return
    with _fetching:
        asked = [(one, ids) for one, lines in looked if len(ids := one.missing(lines))]
        if asked:
            every = np.concatenate([ids for _, ids in asked])
            found, vectors = asked[0][0].fetch(every.tolist())
            for one, ids in asked:
                one.fill(ids, found, vectors)
