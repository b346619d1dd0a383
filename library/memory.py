"""What is in memory of a video: its clips with their lines, its events, and all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy.orm import Session

from domain.memories import Edge, Segment
from domain.moments import Event
from domain.people import tags_in_words
from domain.time import TimeSpan
from flows.video_locks import current_state, watched_videos
from library.params import DEFAULT_LIMIT, AsOf, Limit, Offset, Page, VideoName, page
from people.characters import ClipPeople
from people.overlay import characters_at
from store.database import Store
from store.queries import clips as stored_clips
from store.queries import events as stored_events
from store.queries import outline
from store.queries.records import dump_video
from store.queries.videos import find_video
from views.library import ShownClip, VideoDetails, shown_clips, shown_segment
from views.library import show_video as portrait


def show_video(store: Store, video: VideoName, as_of: AsOf = None) -> VideoDetails:
    """Show what is in memory of a video: clips, people, segments and edges.

    Examples:
      homer show talk
      homer show talk --as-of 10:00 --json

    Raises:
        NotFound: there is no such video.
    """
    shown = portrait(store, video, as_of)
    state = current_state(shown.video.id, shown.state, watched_videos(store))
    return shown.model_copy(update={"state": state})


def dump_lines(store: Store, video: VideoName) -> Iterator[str]:
    """Print everything learned from a video as canonical JSON lines.

    Two ingestions of the same video give the same bytes, in any database.

    Examples:
      homer dump talk | sha256sum

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        yield from dump_video(session, find_video(session, video).id)


def clips(
    store: Store,
    video: VideoName,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
    as_of: AsOf = None,
) -> Page[ShownClip]:
    """Show the clips of a video in order: what was said, read and seen, and the keyframes.

    As of a moment, only the clips that were watched by then.

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video)
        last = _last_clip(session, known.id, as_of)
        until = None if as_of is None else last
        total = stored_clips.count_clips(session, known.id, until)
        some = stored_clips.clips_page(session, known.id, offset, limit, until)
        people = characters_at(session, known.id, last)
        shown = [
            clip.model_copy(
                update={
                    "lines": tuple(one.in_words() for one in clip.lines),
                    "keyframes": tuple(one.in_words() for one in clip.keyframes),
                }
            )
            for clip in shown_clips(session, known.id, some, people, last)
        ]
    return page(shown, total, offset)


def events(
    store: Store,
    video: VideoName,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
    as_of: AsOf = None,
) -> Page[Event]:
    """Show the events of a video by time, with the edges that lead to others of this page.

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video).id
        last = _last_clip(session, known, as_of)
        some = outline.segments_in_time(session, known, last, offset, limit)
        edges = outline.edges_among(session, [segment.id for segment in some], last)
        total = outline.count_segments(session, known, last)
        shown = _events(session, known, last, some, edges)
    return page(shown, total, offset)


def linked_events(store: Store, video: str, segment: int) -> dict[int, Event]:
    """Return an event and those that edges join it with, by id; empty: there is none of that id."""
    with store.begin(snapshot=True) as session:
        last = _last_clip(session, video)
        edges = outline.edges_touching(session, segment, last)
        ends = {end for edge in edges for end in (edge.source, edge.target)} | {segment}
        segments = outline.segments_named(session, video, last, sorted(ends))
        found = {one.number: one for one in _events(session, video, last, segments, edges)}
    return found if segment in found else {}


def _last_clip(session: Session, video: str, as_of_ms: int | None = None) -> int:
    return stored_clips.memory_view(session, [video], as_of_ms).scopes[0].last_clip


def _events(
    session: Session, video: str, last: int, segments: Iterable[Segment], edges: Sequence[Edge]
) -> list[Event]:
    known = characters_at(session, video, last)
    people = ClipPeople(characters=tuple(row.character for row in known))
    return [
        Event(
            ref=f"s{one.id}",
            span=one.span,
            label=tags_in_words(one.label),
            text=tags_in_words(one.summary),
            clips=one.clips,
            edges=tuple(
                edge.model_copy(update={"rationale": tags_in_words(edge.rationale)})
                for edge in edges
                if edge.source == one.id
            ),
        )
        for one in (shown_segment(segment, people) for segment in segments)
    ]


def clip_spans(store: Store, video: str, numbers: Sequence[int]) -> list[TimeSpan]:
    """Return the spans of those of the clips that exist, in order."""
    with store.begin() as session:
        spans = stored_events.clip_spans(session, video, numbers)
    return [span for _, span in sorted(spans.items())]
