"""The plain RAG strategy: one search for the lines nearest to the question, then the answer.

The baseline of every comparison: without signals of words, time and people, without the event
graph and without a second look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from agent.strategy import (
    AgentPolicy,
    Options,
    PolicyParts,
    RunTool,
    SearchEach,
    Strategy,
    Tool,
    ToolArguments,
)

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


# The arguments of the one tool of plain RAG.

NAME = "nearest"
LINES = 10
"""Lines for a query."""


class NearestArguments(ToolArguments):
    """The query, and the options to score the lines by, if any."""

    query: str = Field(min_length=1)
    options: Options = ()
    lines: int = Field(default=LINES, ge=1, le=200)


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the search for the nearest lines."""
    # Imports llama-index, which takes seconds.
    from strategies.plain_rag.nearest import NearestLines

    return {NAME: NearestLines(store, toolbox)}


NEAREST = Tool(
    name=NAME,
    description="Finds the lines of memory whose vectors are nearest to the query's.",
    arguments=NearestArguments,
)


def one_search(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: one search with the question, then the answer."""
    return SearchEach(parts, {NAME: f"the {LINES} nearest lines"}, "the one search is made")


STRATEGY = Strategy(
    name="plain-rag",
    title="answers from the lines nearest to the question: the baseline",
    paper="retrieval-augmented generation",
    builds="nothing of its own: the lines of memory",
    needs="nothing",
    version=1,
    machine="tool_loop",
    tools=(NEAREST,),
    open_tools=open_tools,
    policy=one_search,
    rounds=2,
)
