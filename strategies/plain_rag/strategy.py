"""The plain RAG strategy: one search for the lines nearest to the question, then the answer.

The baseline of every comparison: without signals of words, time and people, without the event
graph and without a second look.
"""

from __future__ import annotations

from pydantic import Field

from agent import strategy
from domain.later import Later

# The arguments of the one tool of plain RAG.

NAME = "nearest"
SEARCH = Later("strategies.plain_rag.nearest")  # Imports llama-index, which takes seconds.
LINES = 10
"""Lines for a query."""


class NearestArguments(strategy.ToolArguments):
    """The query, and the options to score the lines by, if any."""

    query: str = Field(min_length=1)
    options: strategy.Options = ()
    lines: int = Field(default=LINES, ge=1, le=200)


NEAREST = strategy.Tool(
    name=NAME,
    description="Finds the lines of memory whose vectors are nearest to the query's.",
    arguments=NearestArguments,
)


STRATEGY = strategy.Strategy(
    name="plain-rag",
    title="answers from the lines nearest to the question: the baseline",
    paper="retrieval-augmented generation",
    builds="nothing of its own: the lines of memory",
    needs="nothing",
    version=1,
    machine="tool_loop",
    tools=(NEAREST,),
    open_tools=lambda store, toolbox: {NAME: SEARCH.NearestLines(store, toolbox)},
    policy=lambda parts: strategy.SearchEach(
        parts, {NAME: f"the {LINES} nearest lines"}, "the one search is made"
    ),
    rounds=2,
)
