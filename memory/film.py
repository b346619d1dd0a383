"""A video as its page shows it: events with what joins them, and clips a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from domain.base import Frozen
from domain.events import Edge, Segment
from domain.media import Video
from memory.corrected import characters_at
from memory.library import ShownClip, shown_clips, shown_segment
from store.database import Store
from store.queries import clips, events
from store.queries.frames import Frame, frames_of
from store.queries.videos import find_video


class Link(Frozen):
    """An edge between two segments that are there."""

    edge: Edge
    source: Segment
    target: Segment


class Graph(Frozen):
    """The events of a video by time, and what joins them."""

    segments: tuple[Segment, ...]
    links: tuple[Link, ...]

    def segment(self, number: int | None) -> Segment | None:
        """The segment of that id."""
        return next((one for one in self.segments if one.id == number), None)

    def of(self, segment: Segment) -> list[Link]:
        """The links that a segment has, those that lead away first."""
        away = [one for one in self.links if one.source.id == segment.id]
        return [*away, *(one for one in self.links if one.target.id == segment.id)]


class Reel(Frozen, arbitrary_types_allowed=True):
    """Some clips of a video, with the keyframes of each; ``total`` counts all its clips."""

    clips: tuple[ShownClip, ...]
    frames: dict[int, tuple[Frame, ...]]
    total: int


def graph_of(store: Store, video: str) -> Graph:
    """The event graph of a video as it is now.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        found = find_video(session, video)
        last = clips.view_of(session, [found.id]).scopes[0].last_clip
        people = characters_at(session, found.id, last)
        spans = {clip.index: clip.span for clip in clips.clips_of(session, found.id)}
        rows = events.segments_at(session, found.id, last)
        shown = [shown_segment(events.as_segment(found.id, one, spans), people) for one in rows]
        edges = [events.as_edge(one) for one in events.edges_at(session, found.id, last)]
    segments = sorted(shown, key=lambda s: (s.span.start_ms, s.span.end_ms, s.id))
    return Graph(segments=tuple(segments), links=tuple(_links(segments, edges)))


def _links(segments: Sequence[Segment], edges: Sequence[Edge]) -> list[Link]:
    by_id = {segment.id: segment for segment in segments}
    return [
        Link(edge=edge, source=by_id[edge.source], target=by_id[edge.target])
        for edge in edges
        if edge.source in by_id and edge.target in by_id
    ]


def reel(store: Store, video: Video, offset: int, limit: int) -> Reel:
    """``limit`` clips of a video from the ``offset``-th on, with what is remembered of each."""
    with store.begin(snapshot=True) as session:
        total = clips.count_clips(session, video.id)
        stored = clips.some_clips(session, video.id, offset, limit)
        last = clips.view_of(session, [video.id]).scopes[0].last_clip
        people = characters_at(session, video.id, last)
        shown = tuple(shown_clips(session, video.id, stored, people, last))
        frames = frames_of(session, video.id, [clip.index for clip in stored])
    by_clip = {c.index: tuple(f for f in frames if f.clip == c.index) for c in shown}
    return Reel(clips=shown, frames=by_clip, total=total)


def clip_spans(store: Store, video: str, numbers: Sequence[int]) -> list[ShownClip]:
    """Those of these clips that are there, without what is remembered of them."""
    with store.begin() as session:
        stored = clips.clips_of(session, video)
    wanted = set(numbers)
    return [
        ShownClip(index=one.index, span=one.span, state=one.state, error=one.error, lines=())
        for one in stored
        if one.index in wanted
    ]
