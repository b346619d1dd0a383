"""The WorldMM strategy as it is registered: memory at several time scales, as graphs.

Without a language model its memory is written and searched by rules; with one, the model answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.reasoners.port import Conclusion, DecisionContext
from agent.strategy import PolicyParts, RunTool, Strategy, Tool
from domain.asking import Action
from strategies.worldmm.arguments import MemoryArguments
from strategies.worldmm.settings import WorldMemorySettings

if TYPE_CHECKING:
    from agent.builder import MemoryBuilder
    from models.toolbox import Toolbox
    from store.database import Store

NAME = "worldmm"
SETTINGS = WorldMemorySettings()


def open_episodic(store: Store, toolbox: Toolbox) -> RunTool:
    """Open the search of captions."""
    # Imports scipy, which takes half a second.
    from strategies.worldmm.index import WorldIndexes
    from strategies.worldmm.search import EpisodicSearch

    return EpisodicSearch(store, toolbox.text, WorldIndexes(store, NAME, SETTINGS), SETTINGS)


def open_semantic(store: Store, toolbox: Toolbox) -> RunTool:
    """Open the search of what lasts."""
    from strategies.worldmm.index import WorldIndexes
    from strategies.worldmm.search import SemanticSearch

    return SemanticSearch(store, toolbox.text, WorldIndexes(store, NAME, SETTINGS), SETTINGS)


EPISODIC = Tool(
    name="episodic",
    description="Finds captions at four time scales, by the entities and triples they share.",
    arguments=MemoryArguments,
    open=open_episodic,
)
SEMANTIC = Tool(
    name="semantic",
    description="Finds what lasts: habits, relations and attributes of people and things.",
    arguments=MemoryArguments,
    open=open_semantic,
)
NOTE = "WorldMM's memory was written by rules."


class SearchEach:
    """Searches each memory once, then answers from everything that was found."""

    def __init__(self, parts: PolicyParts) -> None:
        self._responder = parts.responder
        self.name = parts.responder.name
        self.note = " ".join(part for part in (parts.responder.note, NOTE) if part)

    def act(self, decision: DecisionContext) -> Action:
        """Search what was not searched yet, episodic memory first; then answer."""
        made = {search.found.mode for search in decision.searches}
        for tool in (EPISODIC, SEMANTIC):
            if tool.name not in made:
                options = decision.question.options
                return Action(
                    kind="search",
                    reason=tool.description,
                    mode=tool.name,
                    query=decision.question.text,
                    arguments={"options": list(options)} if options else {},
                )
        return Action(kind="answer", reason="each memory was searched")

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: the rules do not depend on replies."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's model or rules."""
        return self._responder.conclude(decision)


def _builder() -> MemoryBuilder:
    # Slow to import, and needed only to build.
    from strategies.worldmm.builder import WorldBuilder

    return WorldBuilder(SETTINGS)


STRATEGY = Strategy(
    name=NAME,
    title="captions at four time scales as graphs of entities, and what lasts",
    paper="WorldMM",
    builds="captions at four scales with entities and triples, and relations that recur",
    needs="homer build VIDEO; its rules read English",
    version=1,
    machine="tool_loop",
    tools=(EPISODIC, SEMANTIC),
    policy=SearchEach,
    builder=_builder,
    rounds=SETTINGS.rounds,
)
