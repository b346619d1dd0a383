"""The arguments of WorldMM's tools."""

from __future__ import annotations

from pydantic import Field

from agent.strategy import Options, ToolArguments


class VisualArguments(ToolArguments):
    """What images show, in words, or when they are."""

    query: str = Field(
        min_length=1, description="what they show, or a stretch of time, as in 12:30 - 12:50"
    )


class MemoryArguments(ToolArguments):
    """What to look for, and the options to score what is found by, if any."""

    query: str = Field(min_length=1)
    options: Options = ()
