"""The four retrieval modes as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from agent.strategy import RunTool, Tool, ToolArguments, ToolUse
from domain.asking import Mode
from domain.memories import MemoryView
from domain.time import TimeSpan
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store

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


def mode_tool(mode: Mode) -> Tool:
    """Return a retrieval mode as a tool."""
    arguments = KeyframeArguments if mode is Mode.KEYFRAME else ModeArguments
    return Tool(str(mode), DESCRIPTIONS[mode], arguments)


def open_modes(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the four modes, which share their retrievers."""
    retrievers = Retrievers(store, toolbox, toolbox.profile.settings)
    return {str(mode): _runner(retrievers, mode) for mode in Mode}


def _runner(retrievers: Retrievers, mode: Mode) -> RunTool:
    def run(view: MemoryView, arguments: ModeArguments, use: ToolUse) -> Retrieval:
        span = arguments.span if isinstance(arguments, KeyframeArguments) else None
        return retrievers.search(view, mode, arguments.query, arguments.focus, use.seen, span=span)

    return run


MODE_TOOLS = tuple(map(mode_tool, Mode))
