"""Builds the event graph of a video whose clips a test has written itself."""

from __future__ import annotations

from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.settings import Settings
from memory.event_graph import OpenGraph
from memory.event_graph_update import apply_next_patch
from memory.import_captions import import_track
from memory.writers.port import Writers
from models.ports import MemoryModels
from store.database import Store
from store.queries.conditions import valid_at
from store.queries.events import open_edges_of, open_segment
from store.tables.schema import SegmentRevisionRow, SegmentRow


def update_event_graph(
    store: Store,
    video_id: str,
    writers: Writers,
    models: MemoryModels,
    settings: Settings,
    is_final: bool = False,
) -> int:
    """Apply every patch that is due and return how many there were."""
    count = 0
    while apply_next_patch(store, video_id, writers.event, models, settings.memory, is_final):
        count += 1
    return count


def stored_graph(session: Session, video_id: str, clip: int = 2**30) -> OpenGraph:
    """Return a video's segments as of a clip, and the edges between them that are open now."""
    row = SegmentRevisionRow
    query = select(SegmentRow.number, row).join(row, row.segment_id == SegmentRow.id)
    query = query.where(SegmentRow.video_id == video_id, valid_at(row, clip))
    found = dict(session.execute(query).all())
    edges = open_edges_of(session, [one.segment_id for one in found.values()])
    segments = {number: open_segment(number, one) for number, one in found.items()}
    return OpenGraph(segments, {edge.key: edge for edge in edges.values()})


import_with_events = partial(import_track, build_windows=update_event_graph)
"""Import a caption track and build its event graph."""
