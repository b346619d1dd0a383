"""The plain RAG strategy: one search for the lines nearest to the question, then the answer.

The baseline of every comparison: without signals of words, time and people, without the event
graph and without a second look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.search_each import SearchEach
from agent.strategy import AgentPolicy, PolicyParts, RunTool, Strategy, Tool
from strategies.plain_rag.arguments import LINES, NAME, NearestArguments

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


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
