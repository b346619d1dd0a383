"""Finds the window of clips that is due for a patch, and reads what its writer is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from domain.memories import MemoryKind
from memory.writers.port import EventWindow, WindowLine
from people.characters import ClipPeople, people_at
from store.queries import events as stored
from store.queries.clips import clip_states
from store.queries.events import PatchAt
from store.queries.memories import MemoryAt, memories_of_clips

RELATED_SEGMENTS = 5
"""How many earlier segments a writer is shown for long-range edges."""


@dataclass(frozen=True)
class DueWindow:
    """A window whose patch is due.

    Attributes:
        at_clip: Its last clip.
        first_clip: Its first clip.
        new: Its done clips, and those that earlier windows left uncovered, in order.
        unsettled: Its failed clips, for a later window if they are done then.
        earlier_patch: The patch of this same window, if failed clips of the last window were done
            after it.
    """

    at_clip: int
    first_clip: int
    new: tuple[int, ...]
    unsettled: tuple[int, ...]
    earlier_patch: PatchAt | None = None


def due_window(
    session: Session, video_id: str, clips_per_window: int, is_final: bool
) -> DueWindow | None:
    """Return the next window without a patch whose clips are all done or failed."""
    last_patch = stored.last_patch(session, video_id)
    start = last_patch.at_clip + 1 if last_patch else 0
    state = clip_states(
        session, video_id, start, start + clips_per_window, last_patch.pending if last_patch else ()
    )
    # The last clip of the window, if all of it is settled.
    full, at_clip = start + clips_per_window - 1, None
    if state.highest >= full and (state.first_pending is None or state.first_pending > full):
        at_clip = full
    elif is_final and start <= state.highest < full and state.first_pending is None:
        at_clip = state.highest
    if at_clip is not None:
        window = [clip for clip in state.done if clip <= at_clip]
        failed = tuple(clip for clip in state.failed if clip <= at_clip)
        return DueWindow(at_clip, start, tuple(window), failed)
    # The last window has a patch; clips that had failed may have been done since.
    may_have_late_clips = last_patch and is_final and state.highest == last_patch.at_clip
    if (
        last_patch
        and may_have_late_clips
        and set(last_patch.applied["unsettled"]) & set(state.done)
    ):
        return DueWindow(
            last_patch.at_clip, last_patch.first_clip, state.done, state.failed, last_patch
        )
    return None


def read_window(session: Session, video_id: str, window: DueWindow) -> EventWindow:
    """Read the patch writer's input; its cost depends on the window, not on the video."""
    people = people_at(session, video_id, window.at_clip)
    memories = memories_of_clips(session, video_id, window.new, window.at_clip)
    lines = to_window_lines(memories, people)
    # Read the open segments of the last patch, the latest clips last.
    last_patch = stored.last_patch(session, video_id)
    steps = last_patch.applied["steps"] if last_patch else []
    labels = {draft["label"] for step in steps for draft in step["segments"]}
    segments = stored.open_segments_near(session, video_id, labels=labels)
    previous = sorted(segments.values(), key=lambda segment: (max(segment.clips), segment.number))
    open_clips = previous[-1].clips if previous else ()
    open_memories = memories_of_clips(session, video_id, open_clips, window.at_clip)
    numbers = {segment.number for segment in previous}
    edges = stored.open_edges_of(session, segments).values()
    if not lines:
        related = []
    else:
        mean = np.asarray([line.vector for line in lines]).mean(axis=0).tolist()
        limit = RELATED_SEGMENTS + len(numbers)
        closest = stored.closest_segments(session, video_id, mean, limit).values()
        related = [segment for segment in closest if segment.number not in numbers][
            :RELATED_SEGMENTS
        ]
    clips = {*window.new, *(clip for segment in [*previous, *related] for clip in segment.clips)}
    return EventWindow(
        video=video_id,
        at_clip=window.at_clip,
        clips=stored.clip_spans(session, video_id, clips),
        new=window.new,
        lines=lines,
        before=to_window_lines(open_memories, people),
        previous=tuple(previous),
        edges=tuple(edge for edge in edges if numbers.issuperset(edge.key[:2])),
        related=tuple(related),
        people=people,
    )


def to_window_lines(rows: Sequence[MemoryAt], people: ClipPeople) -> tuple[WindowLine, ...]:
    """Convert stored memories, as of when ``people`` were known, to lines for an event writer."""
    return tuple(
        WindowLine(
            clip=row.memory.clip,
            span=row.memory.span,
            text=people.replace_tags(row.memory.text),
            source=row.memory.source,
            vector=row.vector,
            speaker=people.label(row.memory.speaker) if row.memory.speaker else None,
            tags=row.memory.tags,
            fact=row.memory.kind != MemoryKind.EPISODIC,
        )
        for row in rows
    )
