"""A video as its page shows it: events with what joins them, and clips, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.events import Edge, Segment
from domain.media import Video
from domain.time import TimeSpan
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.database import Store
from store.queries import clips, events, graph
from store.queries.frames import StoredKeyframe, frames_of
from views.library import ShownClip, ShownPerson, shown_clips, shown_person, shown_segment


class ShownEdge(Frozen):
    """An edge between two segments that are there."""

    edge: Edge
    source: Segment
    target: Segment


class GraphPage(Frozen):
    """Some events of a video by time, and what joins them; ``total`` counts all its events."""

    segments: tuple[Segment, ...]
    links: tuple[ShownEdge, ...]
    total: int


class Opened(Frozen):
    """One event with the links that it has, those that lead away first."""

    segment: Segment
    links: tuple[ShownEdge, ...]


class VideoView(Frozen, arbitrary_types_allowed=True):
    """Some clips of a video, with the keyframes of each; ``total`` counts all its clips."""

    clips: tuple[ShownClip, ...]
    frames: dict[int, tuple[StoredKeyframe, ...]]
    total: int


class PeoplePage(Frozen):
    """Some people of a video, by number; ``total`` counts all its people."""

    people: tuple[ShownPerson, ...]
    total: int


def graph_of(
    store: Store, video: str, offset: int = 0, limit: int = 300, as_of_ms: int | None = None
) -> GraphPage:
    """``limit`` events of a video from the ``offset``-th on, by time; None: as it is now."""
    with store.begin(snapshot=True) as session:
        last = _last(session, video, as_of_ms)
        found = graph.segments_in_time(session, video, last, offset, limit)
        edges = graph.edges_among(session, [one.id for one in found], last)
        total = graph.count_segments(session, video, last)
        shown = _told(session, video, last, found)
    return GraphPage(segments=tuple(shown), links=tuple(_links(shown, edges)), total=total)


def opened(store: Store, video: str, segment: int) -> Opened | None:
    """An event of a video as it is now; None where the video has none of that id."""
    with store.begin(snapshot=True) as session:
        last = _last(session, video)
        edges = graph.edges_touching(session, segment, last)
        ends = {end for edge in edges for end in (edge.source, edge.target)} | {segment}
        found = graph.segments_named(session, video, last, sorted(ends))
        shown = _told(session, video, last, found)
    away_first = sorted(edges, key=lambda edge: edge.source != segment)
    links = tuple(_links(shown, away_first))
    return next((Opened(segment=one, links=links) for one in shown if one.id == segment), None)


def count_events(store: Store, video: str) -> int:
    """How many events a video has as it is now."""
    with store.begin() as session:
        return graph.count_segments(session, video, _last(session, video))


def _last(session: Session, video: str, as_of_ms: int | None = None) -> int:
    return clips.view_of(session, [video], as_of_ms).scopes[0].last_clip


def _told(session: Session, video: str, last: int, found: Iterable[Segment]) -> list[Segment]:
    """The segments with names in place of tags."""
    known = characters_at(session, video, last)
    people = ClipPeople(characters=tuple(one.character for one in known))
    return [shown_segment(one, people) for one in found]


def _links(segments: Sequence[Segment], edges: Sequence[Edge]) -> list[ShownEdge]:
    by_id = {segment.id: segment for segment in segments}
    return [
        ShownEdge(edge=edge, source=by_id[edge.source], target=by_id[edge.target])
        for edge in edges
        if edge.source in by_id and edge.target in by_id
    ]


def reel(
    store: Store, video: Video, offset: int, limit: int, as_of_ms: int | None = None
) -> VideoView:
    """``limit`` clips of a video from the ``offset``-th on, with what is remembered of each.

    As of a moment there are only the clips that were watched by then.
    """
    with store.begin(snapshot=True) as session:
        last = _last(session, video.id, as_of_ms)
        until = None if as_of_ms is None else last
        total = clips.count_clips(session, video.id, until)
        stored = clips.some_clips(session, video.id, offset, limit, until)
        people = characters_at(session, video.id, last)
        shown = tuple(shown_clips(session, video.id, stored, people, last))
        frames = frames_of(session, video.id, [clip.index for clip in stored])
    by_clip = {c.index: tuple(f for f in frames if f.clip == c.index) for c in shown}
    return VideoView(clips=shown, frames=by_clip, total=total)


def cast_of(
    store: Store, video: str, offset: int = 0, limit: int = 100, as_of_ms: int | None = None
) -> PeoplePage:
    """``limit`` people of a video from the ``offset``-th on; None: as it is now."""
    with store.begin(snapshot=True) as session:
        found = characters_at(session, video, _last(session, video, as_of_ms))
    shown = tuple(shown_person(one) for one in found[offset : offset + limit])
    return PeoplePage(people=shown, total=len(found))


def clip_spans(store: Store, video: str, numbers: Sequence[int]) -> list[TimeSpan]:
    """When those of these clips are that are there, in order."""
    with store.begin() as session:
        found = events.clip_spans(session, video, numbers)
    return [span for _, span in sorted(found.items())]
