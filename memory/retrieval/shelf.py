"""Indexes of long videos in the database, from where the next process takes them.

Working one out again takes far longer than a search. One that was kept serves as long as nothing
was deleted or said anew of the lines that it is of; what came since is added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain.errors import DatabaseError
from memory.retrieval.index import Ints, VideoIndex
from memory.retrieval.kept_index import Basis, as_bytes, from_bytes, key_of
from store.database import Store
from store.queries.kept_indexes import Kept, keep_index, kept_index
from store.queries.search import Matrix, superseded, vectors_of
from store.queries.stamps import stamps, version_of

LEAST = 1_000
"""Lines of a video whose index is kept: shorter ones are quickly worked out."""
MORE = 1.25
"""It is kept again once it has so many times the lines."""
FAILURES = DatabaseError, DBAPIError, psycopg.Error


class Shelf:
    """Takes and keeps indexes of one store. ``step_ms`` is the length of a clip."""

    def __init__(self, store: Store, step_ms: int) -> None:
        self._store, self._step_ms = store, step_ms
        self._there: dict[str, int] = {}

    def taken(self, session: Session, video: str) -> VideoIndex | None:
        """What is kept of a video, where it is still as its lines are."""
        self._there.pop(video, None)
        found = kept_index(session, video)
        if found is None:
            return None
        since = stamps(session, {video: found.through})[video].lines
        if found.key != key_of(since, self._step_ms):
            return None
        basis = Basis(video, since, found.through, superseded(session, video), self._fetch)
        index = from_bytes(found.body, basis)
        self._there[video] = 0 if index is None else len(index.lines)
        return index

    def put(self, indexes: Iterable[VideoIndex]) -> None:
        """Keep what is not kept yet or has grown by much."""
        for one in indexes:
            if len(one.lines) >= max(LEAST, MORE * self._there.get(one.video, 0)):
                self._there[one.video] = len(one.lines)
                kept = Kept(key_of(one.since, self._step_ms), one.through, as_bytes(one))
                # Where nothing can be written, searching goes on as it did.
                with suppress(*FAILURES), self._store.begin() as session:
                    keep_index(session, one.video, version_of(one.since), kept)

    def _fetch(self, ids: Sequence[int]) -> tuple[Ints, Matrix]:
        with self._store.begin() as session:
            return vectors_of(session, ids)
