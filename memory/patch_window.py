"""Which window of clips is due for a patch, and what its writer is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from domain.time import TimeSpan
from memory.writers.port import EventWindow, KnownEdge, KnownSegment, WindowLine
from people.clip_people import ClipPeople
from people.corrected import characters_at
from store.queries import events as stored
from store.queries.clips import ClipStates, clip_states
from store.queries.events import EdgeAt, PatchAt, SegmentAt
from store.queries.memories import MemoryAt, memories_of_clips

RELATED = 5
"""How many earlier segments are offered for long-range edges."""


@dataclass(frozen=True)
class Due:
    """A window whose patch is due.

    Attributes:
        at_clip: Its last clip.
        first_clip: Its first clip.
        new: Its done clips, and those earlier windows left uncovered, in order.
        unsettled: Its clips that are not done, for a later window if they are ever.
        before: The patch of this same window, where clips came late after the last one.
    """

    at_clip: int
    first_clip: int
    new: tuple[int, ...]
    unsettled: tuple[int, ...]
    before: PatchAt | None = None


def due_window(session: Session, video_id: str, every: int, final: bool) -> Due | None:
    """The next window that has no patch yet and whose clips are all done or failed."""
    last = stored.last_patch(session, video_id)
    start = last.at_clip + 1 if last else 0
    state = clip_states(session, video_id, start, start + every, last.pending if last else ())
    at_clip = _end(state, start, every, final)
    if at_clip is not None:
        window = [clip for clip in state.done if clip <= at_clip]
        failed = tuple(clip for clip in state.failed if clip <= at_clip)
        return Due(at_clip, start, tuple(window), failed)
    # The last window has its patch; clips that failed then may have been done since.
    late = last and final and state.highest == last.at_clip
    if last and late and set(last.applied["unsettled"]) & set(state.done):
        return Due(last.at_clip, last.first_clip, state.done, state.failed, last)
    return None


def _end(state: ClipStates, start: int, every: int, final: bool) -> int | None:
    """The last clip of the window, where all of it is settled."""
    full = start + every - 1
    if state.highest >= full and (state.first_pending is None or state.first_pending > full):
        return full
    rest = final and start <= state.highest < full and state.first_pending is None
    return state.highest if rest else None


def window_of(session: Session, video_id: str, due: Due) -> EventWindow:
    """All that the writer of the patch is given; reads the window, not the video."""
    people = people_at(session, video_id, due.at_clip)
    lines = lines_of(memories_of_clips(session, video_id, due.new, due.at_clip), people)
    previous = _previous(session, video_id)
    last = previous[-1].clips if previous else ()
    before = memories_of_clips(session, video_id, last, due.at_clip)
    edges = stored.open_edges_of(session, [one.id for one in previous])
    related = _related(session, video_id, lines, previous)
    clips = {*due.new, *(clip for one in [*previous, *related] for clip in one.clips)}
    spans = stored.clip_spans(session, video_id, clips)
    return EventWindow(
        video=video_id,
        at_clip=due.at_clip,
        clips=spans,
        new=due.new,
        lines=lines,
        before=lines_of(before, people),
        previous=tuple(_known(one, spans) for one in previous),
        edges=tuple(_known_edges(edges, previous)),
        related=tuple(_known(one, spans) for one in related),
    )


def people_at(session: Session, video_id: str, clip: int) -> ClipPeople:
    """The people of a video as they were known after ``clip``."""
    found = characters_at(session, video_id, clip)
    return ClipPeople(characters=tuple(one.character for one in found))


def lines_of(found: Sequence[MemoryAt], people: ClipPeople) -> tuple[WindowLine, ...]:
    """Stored lines as an event writer reads them."""
    return tuple(
        WindowLine(
            clip=one.memory.clip,
            span=one.memory.span,
            text=people.named(one.memory.text),
            source=one.memory.source,
            vector=one.vector,
            speaker=people.label(one.memory.speaker) if one.memory.speaker else None,
            tags=one.memory.tags,
        )
        for one in found
    )


def _previous(session: Session, video_id: str) -> list[SegmentAt]:
    """The open segments of the last patch, the latest clips last."""
    last = stored.last_patch(session, video_id)
    steps = last.applied["steps"] if last else []
    labels = {draft["label"] for step in steps for draft in step["segments"]}
    found = stored.open_segments_near(session, video_id, labels=labels)
    return sorted(found, key=lambda one: (max(one.clips), one.number))


def _related(
    session: Session, video_id: str, lines: Sequence[WindowLine], previous: Sequence[SegmentAt]
) -> list[SegmentAt]:
    if not lines:
        return []
    mean = np.asarray([one.vector for one in lines]).mean(axis=0).tolist()
    known = {one.id for one in previous}
    found = stored.closest_segments(session, video_id, mean, RELATED + len(known))
    return [one for one in found if one.id not in known][:RELATED]


def _known(found: SegmentAt, spans: Mapping[int, TimeSpan]) -> KnownSegment:
    whole = [spans[clip] for clip in found.clips]
    span = TimeSpan.of(min(s.start_ms for s in whole), max(s.end_ms for s in whole))
    return KnownSegment(found.number, found.label, found.summary, found.clips, span, found.vector)


def _known_edges(edges: Sequence[EdgeAt], segments: Sequence[SegmentAt]) -> list[KnownEdge]:
    labels = {one.id: one.label for one in segments}
    return [
        KnownEdge(
            labels[one.source_id],
            labels[one.target_id],
            one.relation,
            one.confidence,
            one.rationale,
        )
        for one in edges
        if one.source_id in labels and one.target_id in labels
    ]
