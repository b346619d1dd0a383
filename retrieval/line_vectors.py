"""The vectors of lines: held in memory, or fetched from the database where they are looked into.

The first search of a process looks into a few lines of very many: it fetches those alone. Where
many have been looked into, all are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from store.queries.search import Matrix

Ints = NDArray[np.int64]
Places = NDArray[np.int32]
Fetch = Callable[[Sequence[int]], tuple[Ints, Matrix]]
"""Gives those of some memories (by id) that have a vector, in no order, and the vectors."""

_ABSENT = -1
"""The place of what is not there."""
WHOLE = 8
"""Where more than one in so many lines of a video is wanted, all of them are fetched."""


def _nothing(_: Sequence[int]) -> tuple[Ints, Matrix]:
    raise AssertionError("of what is held, nothing is fetched")


class LineVectors:
    """M vectors of D numbers, (M, D). Any number of threads may look and fetch at once.

    Which of them is first does not matter: what they put in is the same. Of a table there are only
    those in memory that were fetched, until most are.
    """

    def __init__(self, rows: Matrix, ids: Ints | None = None, fetch: Fetch | None = None) -> None:
        """``rows`` are the vectors; with ``ids`` (M,) and ``fetch`` there is none yet, (0, D)."""
        self.fetch = fetch or _nothing
        self.ids = np.zeros(0, dtype=np.int64) if ids is None else ids
        places = None if ids is None else np.full(len(ids), _ABSENT, dtype=np.int32)
        self._here: tuple[Matrix, Places | None] = rows, places
        self._count = 0

    @property
    def held(self) -> bool:
        """Whether all are in memory."""
        return self._here[1] is None

    @property
    def width(self) -> int:
        """D."""
        return int(self._here[0].shape[1])

    def __len__(self) -> int:
        rows, places = self._here
        return len(rows if places is None else places)

    @property
    def whole(self) -> Matrix:
        """All of them, shape (M, D)."""
        if not self.held:
            fetch_together([(self, np.arange(len(self)))])
        return self._here[0]

    def of(self, lines: Ints) -> Matrix:
        """Those of some lines, shape (K, D)."""
        fetch_together([(self, lines)])
        return self.there(lines)

    def there(self, lines: Ints) -> Matrix:
        """Those of some lines that are in memory, shape (K, D)."""
        rows, places = self._here
        return np.asarray(rows[lines if places is None else places[lines]])

    def missing(self, lines: Ints) -> Ints:
        """Which lines are to be fetched for some: all of them, where many are wanted."""
        _, places = self._here
        if places is None:
            return lines[:0]
        missing = np.unique(lines[places[lines] == _ABSENT])
        if len(missing) and (self._count + len(missing)) * WHOLE > len(places):
            missing = np.flatnonzero(places == _ABSENT)
        return missing

    def fill(self, lines: Ints, vectors: Matrix) -> None:
        """Put in the vectors (K, D) of lines that were missing; one thread at a time."""
        rows, places = self._here
        if places is None:
            return
        new = places[lines] == _ABSENT
        lines, vectors = lines[new], vectors[new]
        stop = self._count + len(lines)
        if stop == len(places):
            whole = np.empty((stop, self.width), dtype=np.float32)
            known = np.flatnonzero(places != _ABSENT)
            whole[known], whole[lines] = rows[places[known]], vectors
            self._here = whole, None
            return
        room = _with_room(rows, stop)
        room[self._count : stop] = vectors
        # Whoever sees that a line is there must find it there: places are told last.
        self._here = room, places
        places[lines] = np.arange(self._count, stop)
        self._count = stop


def _with_room(rows: Matrix, count: int) -> Matrix:
    """These rows, with room for so many."""
    if count <= len(rows):
        return rows
    room = np.empty((max(count, 2 * len(rows)), rows.shape[1]), dtype=np.float32)
    room[: len(rows)] = rows
    return room


_fetching = Lock()


def fetch_together(wanted: Iterable[tuple[LineVectors, Ints]]) -> None:
    """Have some lines of videos of one database in memory, by one statement.

    One thread at a time: what one has fetched, the next need not.
    """
    looked = [(one, lines) for one, lines in wanted if len(one.missing(lines))]
    if not looked:
        return
    with _fetching:
        asked = [(one, own) for one, lines in looked if len(own := one.missing(lines))]
        if asked:
            every = np.concatenate([one.ids[own] for one, own in asked])
            found, vectors = asked[0][0].fetch(every.tolist())
            parts = np.split(_places(every, found), np.cumsum([len(own) for _, own in asked])[:-1])
            for (one, own), places in zip(asked, parts, strict=True):
                one.fill(own, _rows(vectors, places, one.width))


def _places(ids: Ints, found: Ints) -> Ints:
    """Where each of some ids is among those found."""
    if not len(found):
        return np.full(len(ids), _ABSENT)
    order = np.argsort(found)
    places = order[np.minimum(np.searchsorted(found, ids, sorter=order), len(found) - 1)]
    return np.where(found[places] == ids, places, _ABSENT)


def _rows(vectors: Matrix, places: Ints, width: int) -> Matrix:
    """The vectors at some places, (K, D); zeros for what has been deleted meanwhile."""
    rows, there = np.zeros((len(places), width), dtype=np.float32), places != _ABSENT
    if there.any():
        rows[there] = vectors[places[there]]
    return rows
