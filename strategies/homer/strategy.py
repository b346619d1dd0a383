"""The HOMER strategy as it is registered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field
from sqlalchemy.orm import Session

from agent.builder import WindowParts
from agent.strategy import RunTool, Strategy, Tool, ToolArguments, ToolUse
from domain.asking import Mode
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.settings import MemorySettings
from domain.time import TimeSpan
from memory.event_graph_update import apply_next_patch, due_window
from retrieval.retrievers import Retrievers
from store.queries.events import (
    delete_event_graph,
    last_patch,
    patch_writers,
    videos_without_events,
)
from store.queries.videos import WATCHING, video_state

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


# The four retrieval modes as tools.

DESCRIPTIONS = {
    Mode.EVENT: "Finds the event closest to the query, and its neighbours.",
    Mode.VIDEO: "Finds what was said and done, within the segment in focus or the closest event.",
    Mode.NEIGHBOR: "Goes from the segment in focus to the neighbour with this label.",
    Mode.KEYFRAME: "Finds images that fit the query, or those of a time.",
}


class ModeArguments(ToolArguments):
    """The query, and the segment to search from."""

    query: str = Field(min_length=1)
    focus: int | None = Field(default=None, ge=1, description="the number of a segment: 12 for s12")


class KeyframeArguments(ModeArguments):
    """The query, the segment to search from, and the time to look at instead."""

    span: TimeSpan | None = Field(default=None, description="the time of the images")


def open_modes(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the four modes, which share their retrievers."""
    retrievers = Retrievers(store, toolbox, toolbox.profile.settings)

    def run(mode: Mode, view: MemoryView, arguments: ModeArguments, use: ToolUse) -> Retrieval:
        span = arguments.span if isinstance(arguments, KeyframeArguments) else None
        return retrievers.search(view, mode, arguments.query, arguments.focus, use.seen, span=span)

    return {str(mode): partial(run, mode) for mode in Mode}


MODE_TOOLS = tuple(
    Tool(
        str(mode),
        DESCRIPTIONS[mode],
        KeyframeArguments if mode is Mode.KEYFRAME else ModeArguments,
    )
    for mode in Mode
)


STRATEGY = Strategy(
    name="homer",
    title="plans, keeps a ledger of subtasks, and searches an event graph in four modes",
    paper="HOMER: Hierarchical Online Memory Exploration and Reasoning",
    builds="an event graph: segments with temporal and causal edges",
    needs="nothing: a language model decides better than rules",
    version=2,
    machine="homer",
    tools=MODE_TOOLS,
    open_tools=open_modes,
    windows=lambda: EventGraphBuilder(),
)


# The builder of the event graph: the window's patch is written, checked and stored.


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
        writer, models, settings = parts.writers.event, parts.models, parts.settings.memory
        return apply_next_patch(parts.store, video_id, writer, models, settings, ended, since)

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
