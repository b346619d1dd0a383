"""Indexes of videos, kept between questions, the least used dropped first.

A view only needs what was remembered up to its last clip, and that hardly ever changes afterwards:
an index that reaches so far serves it. One that does not is grown by what came since; one of which
a clip came late is read anew.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import RLock

from sqlalchemy.orm import Session

from domain.view import Scope
from memory.retrieval.events import EventIndex, build_events
from memory.retrieval.index import VideoIndex, build_index, grown
from store.database import Store
from store.queries.clips import view_of
from store.queries.search import (
    cells_between,
    changed_at,
    events_stamp,
    lines_between,
    revisions,
    superseded,
    watched_since,
)

MOST_LINES = 400_000
"""Lines held at most, besides those of the video in use: about 1 GB with 384 dimensions."""


class IndexCache:
    """Serves indexes of one store to any number of threads. ``step_ms`` is the length of a clip."""

    def __init__(self, store: Store, step_ms: int, most_lines: int = MOST_LINES) -> None:
        self._store, self._step_ms, self._most_lines = store, step_ms, most_lines
        self._videos: OrderedDict[str, VideoIndex] = OrderedDict()
        self._events: dict[str, EventIndex] = {}
        self._lock = RLock()

    def lines(self, scope: Scope) -> VideoIndex:
        """The index of a video, reaching at least as far as ``scope``.

        Raises:
            NotFound: no such video.
        """
        with self._lock, self._store.begin(snapshot=True) as session:
            held = self._videos.get(scope.video)
            if held is None or held.since != changed_at(session, scope.video, held.through):
                held = self._read(session, scope, after=-1)
            elif held.through < scope.last_clip:
                more = self._read(session, scope, after=held.through)
                held = grown(held, more, superseded(session, scope.video))
            self._videos[scope.video] = held
            self._videos.move_to_end(scope.video)
            self._drop()
            return held

    def events(self, scope: Scope) -> EventIndex:
        """The segments of a video, as far as its patches go."""
        with self._lock, self._store.begin() as session:
            key = (watched_since(session, scope.video), *events_stamp(session, scope.video))
            held = self._events.get(scope.video)
            if held is None or held.key != key:
                held = build_events(scope.video, key, revisions(session, scope.video))
            self._events[scope.video] = held
            return held

    def _read(self, session: Session, scope: Scope, after: int) -> VideoIndex:
        settled = view_of(session, [scope.video]).scopes[0].last_clip
        through = max(settled, scope.last_clip)
        return build_index(
            scope.video,
            changed_at(session, scope.video, through),
            through,
            lines_between(session, scope.video, after, through),
            cells_between(session, scope.video, after, through),
            self._step_ms,
        )

    def _drop(self) -> None:
        """Forget the least used videos while there is too much, but never the last one asked."""
        while len(self._videos) > 1 and self._held() > self._most_lines:
            dropped, _ = self._videos.popitem(last=False)
            self._events.pop(dropped, None)

    def _held(self) -> int:
        return sum(len(index.lines) for index in self._videos.values())
