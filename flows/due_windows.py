"""Builds what is due of memories that are built window by window, while a video is watched."""

from __future__ import annotations

from agent.builder import WindowParts
from domain.settings import MemorySettings, Settings
from memory.ports import MemoryModels
from memory.writers.port import Writers
from store.database import Store
from strategies.registry import find_strategy


def builds_windows(settings: MemorySettings) -> bool:
    """Check whether a memory that the settings name is built window by window."""
    return any(find_strategy(name).windows is not None for name in settings.strategies)


def build_due_windows(
    store: Store,
    video_id: str,
    writers: Writers,
    models: MemoryModels,
    settings: Settings,
    is_final: bool = False,
) -> None:
    """Build every window that is due of the memories that the settings name.

    Args:
        settings: the strategies whose memory is built, and the length of a window.
        is_final: no more clips will follow.

    Raises:
        ModelError: one could not be written; calling again tries again.
    """
    parts = WindowParts(store, writers, models, settings)
    for name in settings.memory.strategies:
        if windows := find_strategy(name).windows:
            builder = windows()
            while builder.build_next(parts, video_id, ended=is_final):
                continue
