"""The arguments of WorldMM's tools."""

from __future__ import annotations

from pydantic import Field

from agent.strategy import Options, ToolArguments


class MemoryArguments(ToolArguments):
    """What to look for, and the options to score what is found by, if any."""

    query: str = Field(min_length=1)
    options: Options = ()
