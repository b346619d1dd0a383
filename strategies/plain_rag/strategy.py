"""The plain RAG strategy: one search for the lines nearest to the question, then the answer.

The baseline of every comparison: without signals of words, time and people, without the event
graph and without a second look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.reasoners.port import Conclusion, DecisionContext
from agent.strategy import PolicyParts, RunTool, Strategy, Tool
from domain.asking import Action
from strategies.plain_rag.arguments import LINES, NAME, NearestArguments

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


def open_nearest(store: Store, toolbox: Toolbox) -> RunTool:
    """Open the search for the nearest lines."""
    # Imports llama-index, which takes seconds.
    from strategies.plain_rag.nearest import NearestLines

    return NearestLines(store, toolbox)


NEAREST = Tool(
    name=NAME,
    description="Finds the lines of memory whose vectors are nearest to the query's.",
    arguments=NearestArguments,
    open=open_nearest,
)


class OneSearch:
    """Searches once with the question, and answers from what was found."""

    def __init__(self, parts: PolicyParts) -> None:
        self._responder = parts.responder
        self.name, self.note = parts.responder.name, parts.responder.note

    def act(self, decision: DecisionContext) -> Action:
        """Search with the question; answer once that was done."""
        if decision.searches:
            return Action(kind="answer", reason="the one search is made")
        options = decision.question.options
        return Action(
            kind="search",
            reason=f"the {LINES} nearest lines",
            mode=NAME,
            query=decision.question.text,
            arguments={"options": list(options)} if options else {},
        )

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: nothing else can be done."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's model or rules."""
        return self._responder.conclude(decision)


STRATEGY = Strategy(
    name="plain-rag",
    title="answers from the lines nearest to the question: the baseline",
    paper="retrieval-augmented generation",
    builds="nothing of its own: the lines of memory",
    needs="nothing",
    version=1,
    machine="tool_loop",
    tools=(NEAREST,),
    policy=OneSearch,
    rounds=2,
)
