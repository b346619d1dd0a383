"""Finds the window of clips that is due for a patch, and reads what its writer is given."""

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

RELATED_SEGMENTS = 5
"""How many earlier segments are offered for long-range edges."""


@dataclass(frozen=True)
class DueWindow:
    """A window whose patch is due.

    Attributes:
        at_clip: Its last clip.
        first_clip: Its first clip.
        new: Its done clips, and those earlier windows left uncovered, in order.
        unsettled: Its clips that are not done, for a later window if they are ever.
        earlier_patch: The patch of this same window, where clips came late after the last one.
    """

    at_clip: int
    first_clip: int
    new: tuple[int, ...]
    unsettled: tuple[int, ...]
    earlier_patch: PatchAt | None = None


def due_window(session: Session, video_id: str, every: int, is_final: bool) -> DueWindow | None:
    """Return the next window without a patch whose clips are all done or failed."""
    last = stored.last_patch(session, video_id)
    start = last.at_clip + 1 if last else 0
    state = clip_states(session, video_id, start, start + every, last.pending if last else ())
    at_clip = _window_end(state, start, every, is_final)
    if at_clip is not None:
        window = [clip for clip in state.done if clip <= at_clip]
        failed = tuple(clip for clip in state.failed if clip <= at_clip)
        return DueWindow(at_clip, start, tuple(window), failed)
    # The last window has its patch; clips that failed then may have been done since.
    may_have_late_clips = last and is_final and state.highest == last.at_clip
    if last and may_have_late_clips and set(last.applied["unsettled"]) & set(state.done):
        return DueWindow(last.at_clip, last.first_clip, state.done, state.failed, last)
    return None


def _window_end(state: ClipStates, start: int, every: int, is_final: bool) -> int | None:
    """Return the last clip of the window, if all of it is settled."""
    full = start + every - 1
    if state.highest >= full and (state.first_pending is None or state.first_pending > full):
        return full
    is_rest = is_final and start <= state.highest < full and state.first_pending is None
    return state.highest if is_rest else None


def read_window(session: Session, video_id: str, due: DueWindow) -> EventWindow:
    """Read all that the patch writer is given: the window, not the video."""
    people = read_people(session, video_id, due.at_clip)
    lines = to_window_lines(memories_of_clips(session, video_id, due.new, due.at_clip), people)
    previous = _previous_segments(session, video_id)
    last = previous[-1].clips if previous else ()
    before = memories_of_clips(session, video_id, last, due.at_clip)
    edges = stored.open_edges_of(session, [one.id for one in previous])
    related = _related_segments(session, video_id, lines, previous)
    clips = {*due.new, *(clip for one in [*previous, *related] for clip in one.clips)}
    spans = stored.clip_spans(session, video_id, clips)
    return EventWindow(
        video=video_id,
        at_clip=due.at_clip,
        clips=spans,
        new=due.new,
        lines=lines,
        before=to_window_lines(before, people),
        previous=tuple(_to_known_segment(one, spans) for one in previous),
        edges=tuple(_to_known_edges(edges, previous)),
        related=tuple(_to_known_segment(one, spans) for one in related),
    )


def read_people(session: Session, video_id: str, clip: int) -> ClipPeople:
    """Read the people of a video as they were known after ``clip``."""
    rows = characters_at(session, video_id, clip)
    return ClipPeople(characters=tuple(one.character for one in rows))


def to_window_lines(rows: Sequence[MemoryAt], people: ClipPeople) -> tuple[WindowLine, ...]:
    """Convert stored memories to lines for an event writer."""
    return tuple(
        WindowLine(
            clip=one.memory.clip,
            span=one.memory.span,
            text=people.replace_tags(one.memory.text),
            source=one.memory.source,
            vector=one.vector,
            speaker=people.label(one.memory.speaker) if one.memory.speaker else None,
            tags=one.memory.tags,
        )
        for one in rows
    )


def _previous_segments(session: Session, video_id: str) -> list[SegmentAt]:
    """Read the open segments of the last patch, the latest clips last."""
    last = stored.last_patch(session, video_id)
    steps = last.applied["steps"] if last else []
    labels = {draft["label"] for step in steps for draft in step["segments"]}
    found = stored.open_segments_near(session, video_id, labels=labels)
    return sorted(found, key=lambda one: (max(one.clips), one.number))


def _related_segments(
    session: Session, video_id: str, lines: Sequence[WindowLine], previous: Sequence[SegmentAt]
) -> list[SegmentAt]:
    if not lines:
        return []
    mean = np.asarray([one.vector for one in lines]).mean(axis=0).tolist()
    known = {one.id for one in previous}
    found = stored.closest_segments(session, video_id, mean, RELATED_SEGMENTS + len(known))
    return [one for one in found if one.id not in known][:RELATED_SEGMENTS]


def _to_known_segment(row: SegmentAt, spans: Mapping[int, TimeSpan]) -> KnownSegment:
    clip_spans = [spans[clip] for clip in row.clips]
    span = TimeSpan.of(min(s.start_ms for s in clip_spans), max(s.end_ms for s in clip_spans))
    return KnownSegment(row.number, row.label, row.summary, row.clips, span, row.vector)


def _to_known_edges(edges: Sequence[EdgeAt], segments: Sequence[SegmentAt]) -> list[KnownEdge]:
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
