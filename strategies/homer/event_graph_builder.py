"""The builder of the event graph: the window's patch is written, checked and stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from agent.builder import WindowParts
from domain.settings import MemorySettings
from memory.event_graph_update import apply_next_patch
from memory.patch_window import due_window
from store.queries.events import (
    delete_event_graph,
    last_patch,
    patch_writers,
    videos_without_events,
)
from store.queries.videos import WATCHING, video_state


class EventGraphBuilder:
    """Builds the event graph from the memories of clips, as ``agent.builder.WindowBuilder``.

    Its tables are those of segments, edges and patches; a window is stored with its patch.
    """

    def due(
        self, session: Session, video_id: str, settings: MemorySettings, /, *, ended: bool
    ) -> int | None:
        """Return the last clip of the next window without a patch, if all of it is settled.

        A graph without patches came with an import, and is whole.
        """
        if last_patch(session, video_id) is None and not videos_without_events(session, [video_id]):
            return None
        window = due_window(session, video_id, settings.patch_every, ended)
        return None if window is None else window.at_clip

    def build_next(
        self, parts: WindowParts, video_id: str, /, *, ended: bool, since: datetime | None = None
    ) -> bool:
        """Write the next window's patch, and store it; return False where none is due.

        Its model calls count for the last clip of the window.

        Raises:
            ModelError: no patch could be written.
        """
        tools = (parts.writers.event, parts.models, parts.settings.memory)
        return apply_next_patch(parts.store, video_id, *tools, ended, since)

    def built_through(self, session: Session, video_id: str, /) -> int:
        """Return the last clip of the last patch; -1 for none."""
        patch = last_patch(session, video_id)
        return -1 if patch is None else patch.at_clip

    def writers(self, session: Session, video_ids: Sequence[str], /) -> tuple[str, ...]:
        """Return who wrote the patches of these videos; empty where nothing is built."""
        return patch_writers(session, video_ids)

    def delete(self, session: Session, video_id: str, /) -> None:
        """Delete the segments, edges and patches of a video."""
        delete_event_graph(session, video_id)

    def unbuilt(
        self, session: Session, video_ids: Sequence[str], settings: MemorySettings, /
    ) -> tuple[str, ...]:
        """Return those of these videos without an event graph, although a window is due."""
        return tuple(
            video
            for video in videos_without_events(session, video_ids)
            if self.due(session, video, settings, ended=_has_ended(session, video)) is not None
        )


def _has_ended(session: Session, video_id: str) -> bool:
    state = video_state(session, video_id)
    return state is not None and state.state != WATCHING
