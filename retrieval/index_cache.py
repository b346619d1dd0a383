"""Indexes of videos, kept between questions, the least used dropped first.

A view only needs what was remembered up to its last clip, and that hardly ever changes afterwards:
an index that reaches so far serves it. One that does not is grown by what came since; one of which
a clip came late is read anew. Whether anything changed is asked once for all videos of a view.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_
from threading import RLock

from sqlalchemy.orm import Session

from domain.garbage import garbage_collection_paused
from domain.memories import Scope
from people.corrected import people_as_of
from retrieval.event_search import EventIndex, EventsInView, build_events, segments_in
from retrieval.index_store import IndexStore
from retrieval.people_in_query import ViewPeople, ViewPerson
from retrieval.video_index import VideoIndex, build_index, grown
from retrieval.view_index import VideoPart
from store.database import Store
from store.queries.clips import memory_view
from store.queries.search import (
    cells_between,
    lines_between,
    segment_revisions,
    superseded_memories,
)
from store.queries.stamps import PeopleKey, Stamp, current_snapshot, existing_videos, stamps

MOST_LINES = 400_000
"""Lines held at most, besides those of the videos in use: about 1 GB with 384 dimensions."""
MOST_PEOPLE = 512
"""Scopes of which it is kept who is who in them."""
MOST_VIEWS = 8
"""Views kept whole while nothing is written."""


@dataclass(frozen=True)
class Looked:
    """What a view sees: the indexes of its videos, in order, and who is who in them.

    ``stamps`` tell by video how far each had come then.
    """

    indexes: tuple[VideoIndex, ...]
    cast: ViewPeople
    stamps: Mapping[str, Stamp]


class IndexCache:
    """Serves indexes of one store to any number of threads. ``step_ms`` is the length of a clip."""

    def __init__(self, store: Store, step_ms: int, most_lines: int = MOST_LINES) -> None:
        self._store, self._step_ms, self._most_lines = store, step_ms, most_lines
        self._videos: OrderedDict[str, VideoIndex] = OrderedDict()
        self._events: dict[str, EventIndex] = {}
        self._in_view: dict[str, EventsInView] = {}
        self._people: OrderedDict[Scope, tuple[PeopleKey, tuple[ViewPerson, ...]]] = OrderedDict()
        self._cast = ViewPeople()
        self._moment: str | None = None
        self._looked: dict[tuple[Scope, ...], Looked] = {}
        self._keeper = IndexStore(store, step_ms)
        self._lock = RLock()

    def look(self, scopes: Sequence[Scope]) -> Looked:
        """The indexes of videos, each reaching at least as far as its scope, and their people.

        Raises:
            NotFound: no such video.
        """
        with self._lock:
            return self._same(tuple(scopes)) or self._look(tuple(scopes))

    def _same(self, scopes: tuple[Scope, ...]) -> Looked | None:
        """What these scopes showed last, where nothing at all was written since."""
        found = self._looked.get(scopes)
        if found is None:
            return None
        if self._store.run_read_only(current_snapshot) != self._moment:
            return None
        for scope in scopes:
            self._videos.move_to_end(scope.video)
        return found

    def _look(self, scopes: tuple[Scope, ...]) -> Looked:
        with self._store.begin(snapshot=True) as session:
            self._at(current_snapshot(session))
            held = {*self._videos, *(scope.video for scope in self._people)}
            self._forget(held - existing_videos(session, held))
            now = stamps(session, {scope.video: self._reach(scope) for scope in scopes})
            self._take(session, now)
            indexes = tuple(self._index(session, one) for one in scopes)
            who = [self._who(session, one, now[one.video]) for one in scopes]
        if self._moment is not None:
            self._keeper.put(indexes)
        self._drop({scope.video for scope in scopes})
        found = Looked(indexes, self._cast_of(tuple(chain.from_iterable(who))), now)
        if self._moment is not None:
            self._looked[scopes] = found
        return found

    def _at(self, now: str | None) -> None:
        """Views seen at another moment may have changed since; a few of one moment are kept."""
        if now != self._moment or len(self._looked) == MOST_VIEWS:
            self._looked.clear()
        self._moment = now

    def lines(self, scope: Scope) -> VideoIndex:
        """The index of one video; see ``look``."""
        return self.look([scope]).indexes[0]

    def events(
        self, parts: Sequence[VideoPart], now: Mapping[str, Stamp]
    ) -> tuple[EventsInView, ...]:
        """The segments that are in these parts of a view, at least as new as ``now`` says."""
        with self._lock:
            return tuple(self._seen(part, now[part.scope.video]) for part in parts)

    def _reach(self, scope: Scope) -> int:
        held = self._videos.get(scope.video)
        return scope.last_clip if held is None else held.through

    def _take(self, session: Session, now: Mapping[str, Stamp]) -> None:
        """Have what another process kept of videos, where nothing is held that is still true."""
        held = self._videos
        stale = [v for v, one in now.items() if v not in held or held[v].since != one.lines]
        for video in stale:
            held.pop(video, None)
        held |= self._keeper.taken(session, stale)

    def _index(self, session: Session, scope: Scope) -> VideoIndex:
        held = self._videos.get(scope.video)
        if held is None:
            held = self._read(session, scope, after=-1)
        elif held.through < scope.last_clip:
            more = self._read(session, scope, after=held.through)
            held = grown(held, more, superseded_memories(session, scope.video))
        self._videos[scope.video] = held
        self._videos.move_to_end(scope.video)
        return held

    def _read(self, session: Session, scope: Scope, after: int) -> VideoIndex:
        settled = memory_view(session, [scope.video]).scopes[0].last_clip
        through = max(settled, scope.last_clip)
        with garbage_collection_paused():
            return build_index(
                scope.video,
                stamps(session, {scope.video: through})[scope.video].lines,
                through,
                lines_between(session, scope.video, after, through),
                cells_between(session, scope.video, after, through),
                self._step_ms,
            )

    def _seen(self, part: VideoPart, now: Stamp) -> EventsInView:
        video, last_clip, spans = part.scope.video, part.scope.last_clip, part.index.spans
        index = self._events.get(video)
        if index is None or index.key != now.events:
            index = self._read_events(video)
            self._events[video] = index
        seen = self._in_view.get(video)
        if seen is None or not seen.of(index, last_clip, spans):
            seen = segments_in(index, last_clip, spans)
            self._in_view[video] = seen
        return seen

    def _read_events(self, video: str) -> EventIndex:
        with self._store.begin(snapshot=True) as session, garbage_collection_paused():
            key = stamps(session, {video: -1})[video].events
            return build_events(video, key, segment_revisions(session, video))

    def _who(self, session: Session, scope: Scope, now: Stamp) -> tuple[ViewPerson, ...]:
        key, known = self._people.get(scope, (None, ()))
        if key != now.people:
            known = tuple(ViewPerson(scope.video, one) for one in people_as_of(session, scope))
            self._people[scope] = now.people, known
        self._people.move_to_end(scope)
        return known

    def _cast_of(self, people: tuple[ViewPerson, ...]) -> ViewPeople:
        """The last cast where it is the same again, with what it has worked out of names."""
        last = self._cast.people
        same = len(last) == len(people) and all(map(is_, last, people))
        self._cast = self._cast if same else ViewPeople(people)
        return self._cast

    def _drop(self, used: set[str]) -> None:
        """Forget what is least used while there is too much, but nothing that is in use."""
        unused = [video for video in self._videos if video not in used]
        while unused and self._held() > self._most_lines:
            self._forget({unused.pop(0)})
        while len(self._people) > max(MOST_PEOPLE, len(used)):
            self._people.popitem(last=False)

    def _forget(self, videos: Collection[str]) -> None:
        if videos:
            self._looked.clear()
        for video in videos:
            self._videos.pop(video, None)
        for scope in [one for one in self._people if one.video in videos]:
            del self._people[scope]
        # A search that was under way may have put back what was forgotten meanwhile.
        for kept in (self._events, self._in_view):
            for video in kept.keys() - self._videos.keys():
                del kept[video]

    def _held(self) -> int:
        return sum(len(index.lines) for index in self._videos.values())
