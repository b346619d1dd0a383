"""Indexes of long videos in the database, from where the next process takes them.

Working one out again takes far longer than a search. One that was kept serves as long as nothing
was deleted or said anew of the lines that it is of; what came since is added to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import psycopg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.errors import DatabaseError
from domain.garbage import garbage_collection_paused
from retrieval.index_format import Basis, as_bytes, from_bytes, key_of
from retrieval.video_index import Ints, VideoIndex
from store.database import Store
from store.queries.kept_indexes import (
    CachedIndex,
    cache_index,
    cached_index_body,
    cached_index_keys,
)
from store.queries.search import Matrix, superseded_memories, vectors_of
from store.queries.stamps import stamps, version_of

LEAST = 1_000
"""Lines of a video whose index is kept: shorter ones are quickly worked out."""
MORE = 1.25
"""It is kept again once it has so many times the lines."""
FAILURES = DatabaseError, SQLAlchemyError, psycopg.Error


class IndexStore:
    """Takes and keeps indexes of one store. ``step_ms`` is the length of a clip."""

    def __init__(self, store: Store, step_ms: int) -> None:
        self._store, self._step_ms = store, step_ms
        self._there: dict[str, int] = {}

    def taken(self, session: Session, videos: Collection[str]) -> dict[str, VideoIndex]:
        """What is kept of some videos, where it is still as their lines are.

        One is made of its bytes while the database sends the next.
        """
        if not videos:
            return {}
        with garbage_collection_paused(), ThreadPoolExecutor(1, thread_name_prefix="index") as pool:
            begun = {
                basis.video: pool.submit(from_bytes, cached_index_body(session, basis.video), basis)
                for basis in self._still_true(session, videos)
            }
        found = {video: one.result() for video, one in begun.items()}
        whole = {video: index for video, index in found.items() if index is not None}
        self._there |= {video: len(index.lines) for video, index in whole.items()}
        return whole

    def _still_true(self, session: Session, videos: Collection[str]) -> Iterator[Basis]:
        keys = cached_index_keys(session, videos)
        now = stamps(session, {video: through for video, (_, through) in keys.items()})
        for video, (key, through) in keys.items():
            since = now[video].lines
            if key == key_of(since, self._step_ms):
                yield Basis(video, since, through, superseded_memories(session, video), self._fetch)

    def put(self, indexes: Iterable[VideoIndex]) -> None:
        """Keep what is not kept yet or has grown by much."""
        for one in (index for index in indexes if index.line_vectors.width):
            lines, there = len(one.lines), self._there.get(one.video, 0)
            if lines < there or lines >= max(LEAST, MORE * there):
                self._there[one.video] = lines
                kept = CachedIndex(key_of(one.since, self._step_ms), one.through, as_bytes(one))
                # Where nothing can be written, searching goes on as it did.
                with suppress(*FAILURES), self._store.begin() as session:
                    cache_index(session, one.video, version_of(one.since), kept)

    def _fetch(self, ids: Sequence[int]) -> tuple[Ints, Matrix]:
        return self._store.run_read_only(partial(vectors_of, ids=ids))
