"""Updates the event graph every ten clips: a patch is proposed, checked, repaired, applied.

The applied and dropped items and the uncovered clips are stored with the patch, so the graph can be
rebuilt from its patches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from domain import faults
from domain.calls import CallRecord
from domain.errors import ModelError
from domain.memories import MemoryKind, OpenEdge, OpenSegment
from domain.settings import MemorySettings
from memory import patches
from memory.drafts import CallRecording, ReuseCalls
from memory.event_graph import GraphChange, OpenGraph, change_from_patch
from memory.writers.port import EventWindow, EventWriter, WindowLine
from models.ports import MemoryModels
from models.text_endpoint import recorded_embeddings
from people.characters import ClipPeople, people_at
from people.model_transactions import (
    ModelCallNeeded,
    TransactionEmbedder,
    record_call,
    run_with_models,
)
from store.database import Store
from store.queries import events as stored
from store.queries.alerts import queue_segments
from store.queries.clips import clip_states
from store.queries.encoders import require_encoder
from store.queries.events import PatchAt
from store.queries.memories import MemoryAt, memories_of_clips
from store.queries.percepts import lock_video


def apply_next_patch(
    store: Store,
    video_id: str,
    writer: EventWriter,
    models: MemoryModels,
    settings: MemorySettings,
    is_final: bool,
    since: datetime | None = None,
) -> bool:
    """Apply the next patch that is due; return False where none is.

    Args:
        store: The store.
        video_id: The video.
        writer: Who proposes it.
        models: For the segments' vectors.
        settings: The window's length and the limits of a patch.
        is_final: Whether no more clips will follow; the remaining ones are then a window.
        since: Replies on record are used instead of another call: those after this time; None: all.

    Raises:
        ModelError: no patch could be written; calling again tries again.
    """
    update = _GraphUpdate(store, video_id, writer, models, settings, is_final, since)
    with recorded_embeddings(update.record):
        applied = run_with_models(store, update.run)
    if applied:
        faults.fault_point(faults.FaultPoint.PATCH_COMMITTED)
    return applied


class _GraphUpdate:
    """Writes the next patch of a video outside of transactions, and stores it in one."""

    def __init__(
        self,
        store: Store,
        video_id: str,
        writer: EventWriter,
        models: MemoryModels,
        settings: MemorySettings,
        is_final: bool,
        since: datetime | None,
    ) -> None:
        self._store, self._video, self._is_final = store, video_id, is_final
        self._since = since
        self._writer, self._settings = writer, settings
        self._vectors = TransactionEmbedder(models.text)
        self._at_clip: int | None = None
        self._written_for: tuple[DueWindow, EventWindow] | None = None
        self._written: tuple[patches.WrittenPatch, int] = (patches.WrittenPatch(segments=()), 0)

    # A patch is stored in one transaction, which begins after the model calls: the writer's input
    # is read again in it, and if it has changed, the patch is written again.
    def run(self, session: Session) -> bool:
        """Apply the next patch; False where none is due.

        Raises:
            ModelCallNeeded: no patch has been written for the window's present content.
        """
        lock_video(session, self._video)
        require_encoder(session, self._vectors.name)
        due = due_window(session, self._video, self._settings.patch_every, self._is_final)
        if due is None:
            return False
        self._at_clip = due.at_clip
        window = read_window(session, self._video, due)
        written, repairs = patches.WrittenPatch(segments=()), 0
        invalid = list[patches.DroppedItem]()
        left: tuple[int, ...] = ()
        if window.new:
            if self._written_for != (due, window):
                raise ModelCallNeeded(lambda: self._write(due, window))
            # The written patch without items that the memory does not support.
            written, repairs = self._written
            context = read_patch_context(session, window, written)
            written, invalid = patches.drop_invalid_items(written, context, self._settings)
            left = patches.uncovered_clips(written, context)
        apply_patch(session, window, written, self._vectors)
        before = due.earlier_patch
        steps = [*(before.applied["steps"] if before else ()), written.model_dump(mode="json")]
        dropped = [
            {
                "item": item.item,
                # Through JSON, since a model may have written NaN, which Postgres rejects.
                "draft": json.loads(item.draft.model_dump_json()),
                "reasons": list(item.reasons),
            }
            for item in invalid
        ]
        writers = [*(before.writers if before else ()), *([self._writer.name] * bool(window.new))]
        patch = PatchAt(
            id=0,
            at_clip=due.at_clip,
            first_clip=due.first_clip,
            repairs=repairs,
            applied={"steps": steps, "unsettled": list(due.unsettled)},
            dropped=[*(before.dropped if before else ()), *dropped],
            pending=tuple(sorted({*due.unsettled, *left})),
            writers=tuple(dict.fromkeys(writers)),
        )
        stored.save_patch(session, window.video, patch)
        if self._since is None:  # What is built again was judged when it was watched.
            queue_segments(session, self._video, due.at_clip)
        faults.fault_point(faults.FaultPoint.PATCH_ROWS)
        return True

    def record(self, call: CallRecord) -> None:
        """Store a request for vectors; it counts for the last clip of the window."""
        record_call(self._store, self._video, self._at_clip, call)

    def _write(self, due: DueWindow, window: EventWindow) -> None:
        reuse = ReuseCalls(self._since, sound=True)
        recording = CallRecording(self._store, self._video, due.at_clip, reuse)
        recorded = replace(window, sink=recording.record, replay=recording.recorded_reply)
        patch, repairs = self._writer.patch(recorded), 0
        while repairs < self._settings.patch_repairs:
            with self._store.begin() as session:
                complaints = patches.check_patch(
                    patch, read_patch_context(session, recorded, patch), self._settings
                )
            if not complaints:
                break
            repairs += 1
            try:
                patch = self._writer.repair(
                    recorded, patch, [str(complaint) for complaint in complaints]
                )
            except ModelError:
                # The valid items of the last patch are applied; uncovered clips stay pending.
                break
        self._written = (patch, repairs)
        self._written_for = (due, window)


def _labels_and_clips(patch: patches.WrittenPatch) -> tuple[set[str], set[int]]:
    labels = {draft.label for draft in patch.segments}
    labels |= {draft.extends for draft in patch.segments if draft.extends}
    labels |= {end for edge in patch.edges for end in (edge.source, edge.target)}
    clips = {clip for draft in patch.segments for clip in draft.clips}
    return labels, clips | {clip for edge in patch.edges for clip in edge.evidence}


def read_patch_context(
    session: Session, window: EventWindow, patch: patches.WrittenPatch
) -> patches.PatchContext:
    """Read what ``patch`` is checked against: the labels and clips it mentions."""
    labels, clips = _labels_and_clips(patch)
    segments = stored.open_segments_near(session, window.video, labels=labels)
    names = {segment.number: segment.label for segment in segments.values()}
    edges = stored.open_edges_of(session, segments).values()
    between = [edge for edge in edges if edge.source in names and edge.target in names]
    return patches.PatchContext(
        at_clip=window.at_clip,
        new=window.new,
        watched=stored.done_spans(session, window.video, {*clips, *window.new}, window.at_clip),
        open_segments={segment.label: segment.clips for segment in segments.values()},
        edges=frozenset((names[e.source], names[e.target], e.relation) for e in between),
    )


def apply_patch(
    session: Session, window: EventWindow, patch: patches.WrittenPatch, vectors: TransactionEmbedder
) -> None:
    """Store what a checked patch changes; costs as much as what it touches.

    Raises:
        ModelCallNeeded: Vectors of its texts are yet to be made.
    """
    labels, clips = _labels_and_clips(patch)
    touched = stored.open_segments_near(session, window.video, labels=labels, clips=clips)
    edges = stored.open_edges_of(session, touched)
    rows = _GraphRows(session, window.video, window.at_clip, touched, edges)
    number = stored.next_segment_number(session, window.video)
    rows.store(change_from_patch(rows.graph, patch, window.at_clip, number), vectors)


class _GraphRows:
    """The part of the stored graph that a patch touches."""

    def __init__(
        self,
        session: Session,
        video_id: str,
        at_clip: int,
        segments: Mapping[int, OpenSegment],
        edges: Mapping[int, OpenEdge],
    ) -> None:
        self.session, self.video_id, self.at_clip = session, video_id, at_clip
        self.ids = {segment.number: row for row, segment in segments.items()}
        self.edge_ids = {edge.key: row for row, edge in edges.items()}
        around = {end for edge in edges.values() for end in edge.key[:2]} - self.ids.keys()
        self.graph = OpenGraph(
            {segment.number: segment for segment in segments.values()},
            {edge.key: edge for edge in edges.values()},
        )
        self.ids |= stored.segment_ids(session, video_id, around)

    def store(self, change: GraphChange, vectors: TransactionEmbedder) -> None:
        """Close what no longer holds, then open what holds now."""
        new = [number for number in change.segments if number not in self.ids]
        changed = [self.ids[number] for number in change.segments if number in self.ids]
        self.ids |= stored.add_segments(self.session, self.video_id, new)
        absorbed = {
            self.ids[number]: self.ids[survivor]
            for number, survivor in change.absorbed.items()
            if number in self.graph.segments
        }
        stored.close_revisions(self.session, changed, self.at_clip, absorbed)
        segments = list(change.segments.values())
        texts = [f"{segment.label}. {segment.summary}" for segment in segments]
        embedded = list(vectors.embed(texts)) if texts else []
        rows = [
            {
                "segment_id": self.ids[segment.number],
                "revision": segment.revision,
                "label": segment.label,
                "summary": segment.summary,
                "clips": list(segment.clips),
                "history": [asdict(absorbed) for absorbed in segment.history],
                "from_clip": self.at_clip,
                "embedding": vector.tolist(),
            }
            for segment, vector in zip(segments, embedded, strict=True)
        ]
        stored.add_revisions(self.session, rows)
        closed = [self.edge_ids[ends] for ends in sorted(change.closed_edges)]
        stored.close_edges(self.session, closed, self.at_clip)
        opened = []
        for edge in change.opened_edges.values():
            row: dict[str, Any] = asdict(edge) | {"evidence": list(edge.evidence)}
            ends = {f"{end}_id": self.ids[row.pop(end)] for end in ("source", "target")}
            opened.append(row | ends)
        stored.add_edges(self.session, self.video_id, self.at_clip, opened)


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
