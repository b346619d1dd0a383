"""Builds the event graph of a video whose clips a test has written itself."""

from __future__ import annotations

from functools import partial

from domain.settings import Settings
from memory.event_graph_update import apply_next_patch
from memory.import_captions import import_track
from memory.ports import MemoryModels
from memory.writers.port import Writers
from store.database import Store


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


import_with_events = partial(import_track, build_windows=update_event_graph)
"""Import a caption track and build its event graph."""
