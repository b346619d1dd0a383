"""Read models of a video's page: events with their edges, and clips, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.media import Video
from domain.memories import Edge, Segment
from domain.time import TimeSpan
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.database import Store
from store.queries import clips, events, graph
from store.queries.keyframes import StoredKeyframe, frames_of
from views.library import ShownClip, shown_clips, shown_segment


class ShownEdge(Frozen):
    """An edge with its two segments."""

    edge: Edge
    source: Segment
    target: Segment


class GraphPage(Frozen):
    """Some segments of a video by time, and the edges among them; ``total`` counts all."""

    segments: tuple[Segment, ...]
    links: tuple[ShownEdge, ...]
    total: int


class SegmentView(Frozen):
    """One segment with its edges, outgoing ones first."""

    segment: Segment
    links: tuple[ShownEdge, ...]


class ClipsPage(Frozen, arbitrary_types_allowed=True):
    """Some clips of a video, with the keyframes of each; ``total`` counts all its clips."""

    clips: tuple[ShownClip, ...]
    frames: dict[int, tuple[StoredKeyframe, ...]]
    total: int


def load_graph_page(
    store: Store, video: str, offset: int = 0, limit: int = 300, as_of_ms: int | None = None
) -> GraphPage:
    """Return ``limit`` segments from the ``offset``-th on, by time; ``as_of_ms`` None: now."""
    with store.begin(snapshot=True) as session:
        last = _last(session, video, as_of_ms)
        segments = graph.segments_in_time(session, video, last, offset, limit)
        edges = graph.edges_among(session, [segment.id for segment in segments], last)
        total = graph.count_segments(session, video, last)
        shown = _with_names(session, video, last, segments)
    return GraphPage(segments=tuple(shown), links=tuple(_links(shown, edges)), total=total)


def load_segment_view(store: Store, video: str, segment: int) -> SegmentView | None:
    """Return a segment of a video as it is now; None if the video has none of that id."""
    with store.begin(snapshot=True) as session:
        last = _last(session, video)
        edges = graph.edges_touching(session, segment, last)
        ends = {end for edge in edges for end in (edge.source, edge.target)} | {segment}
        segments = graph.segments_named(session, video, last, sorted(ends))
        shown = _with_names(session, video, last, segments)
    away_first = sorted(edges, key=lambda edge: edge.source != segment)
    links = tuple(_links(shown, away_first))
    return next(
        (SegmentView(segment=each, links=links) for each in shown if each.id == segment), None
    )


def _last(session: Session, video: str, as_of_ms: int | None = None) -> int:
    return clips.memory_view(session, [video], as_of_ms).scopes[0].last_clip


def _with_names(
    session: Session, video: str, last: int, segments: Iterable[Segment]
) -> list[Segment]:
    known = characters_at(session, video, last)
    people = ClipPeople(characters=tuple(row.character for row in known))
    return [shown_segment(segment, people) for segment in segments]


def _links(segments: Sequence[Segment], edges: Sequence[Edge]) -> list[ShownEdge]:
    by_id = {segment.id: segment for segment in segments}
    return [
        ShownEdge(edge=edge, source=by_id[edge.source], target=by_id[edge.target])
        for edge in edges
        if edge.source in by_id and edge.target in by_id
    ]


def load_clips_page(
    store: Store, video: Video, offset: int, limit: int, as_of_ms: int | None = None
) -> ClipsPage:
    """Return ``limit`` clips of a video from the ``offset``-th on, with their memories.

    With ``as_of_ms`` only the clips that were watched by then are returned.
    """
    with store.begin(snapshot=True) as session:
        last = _last(session, video.id, as_of_ms)
        until = None if as_of_ms is None else last
        total = clips.count_clips(session, video.id, until)
        stored = clips.clips_page(session, video.id, offset, limit, until)
        people = characters_at(session, video.id, last)
        shown = tuple(shown_clips(session, video.id, stored, people, last))
        frames = frames_of(session, video.id, [clip.index for clip in stored])
    by_clip = {c.index: tuple(f for f in frames if f.clip == c.index) for c in shown}
    return ClipsPage(clips=shown, frames=by_clip, total=total)


def clip_spans(store: Store, video: str, numbers: Sequence[int]) -> list[TimeSpan]:
    """Return the spans of those of the clips that exist, in order."""
    with store.begin() as session:
        spans = events.clip_spans(session, video, numbers)
    return [span for _, span in sorted(spans.items())]
