"""The arguments of the one tool of plain RAG."""

from __future__ import annotations

from pydantic import Field

from agent.strategy import Options, ToolArguments

NAME = "nearest"
LINES = 10
"""Lines for a query."""


class NearestArguments(ToolArguments):
    """The query, and the options to score the lines by, if any."""

    query: str = Field(min_length=1)
    options: Options = ()
    lines: int = Field(default=LINES, ge=1, le=200)
