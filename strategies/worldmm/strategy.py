"""The WorldMM strategy as it is registered: memory at several time scales, as graphs.

Its memory is written and searched by rules, or by a language model where the profile has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.search_each import SearchEach
from agent.strategy import AgentPolicy, PolicyParts, RunTool, Strategy, Tool
from strategies.worldmm.arguments import MemoryArguments
from strategies.worldmm.parts import PARTS
from strategies.worldmm.parts import SEMANTIC as LASTING
from strategies.worldmm.settings import WorldMemorySettings

if TYPE_CHECKING:
    from agent.builder import MemoryBuilder
    from models.toolbox import Toolbox
    from perception.frame_keeper import FrameKeeper
    from store.database import Store

NAME = "worldmm"
SETTINGS = WorldMemorySettings()


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the searches of captions and of what lasts, which share the memory that is built."""
    # Imports scipy, which takes half a second.
    from strategies.worldmm.index import WorldIndexes
    from strategies.worldmm.search import EpisodicSearch, SemanticSearch

    indexes = WorldIndexes(store, NAME, SETTINGS)
    return {
        EPISODIC.name: EpisodicSearch(store, toolbox.text, indexes, SETTINGS),
        SEMANTIC.name: SemanticSearch(store, toolbox.text, indexes, SETTINGS),
    }


EPISODIC = Tool(
    name="episodic",
    description="Finds captions at four time scales, by the entities and triples they share.",
    arguments=MemoryArguments,
)
SEMANTIC = Tool(
    name="semantic",
    description="Finds what lasts: habits, relations and attributes of people and things.",
    arguments=MemoryArguments,
)
NOTE = "WorldMM's memory was searched by rules."
VERSION_2_NOTE = "WorldMM's memory was written by rules."
"""What runs before version 3 said, also of what a language model wrote."""


def search_memories(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else each memory is searched once.

    Before version 2 a language model only answered.
    """
    if parts.calls is not None and parts.version > 1:
        # Imports scipy, which takes half a second.
        from strategies.worldmm.policy import ModelPolicy

        return ModelPolicy(parts, parts.calls)
    note = NOTE if parts.version > 2 else VERSION_2_NOTE
    reasons = {tool.name: tool.description for tool in parts.tools}
    return SearchEach(parts, reasons, "each memory was searched", note)


def _builder() -> MemoryBuilder:
    # Slow to import, and needed only to build.
    from strategies.worldmm.builder import WorldBuilder

    return WorldBuilder(SETTINGS)


def _keeper() -> FrameKeeper:
    # Imports OpenCV, which only watching needs.
    from strategies.worldmm.keeper import SegmentKeeper

    return SegmentKeeper(SETTINGS)


STRATEGY = Strategy(
    name=NAME,
    title="captions at four time scales as graphs of entities, and what lasts",
    paper="WorldMM",
    builds="captions at four scales with entities and triples, what recurs, and a frame of 10 s",
    needs="homer build VIDEO; its rules read English",
    version=3,
    machine="tool_loop",
    tools=(EPISODIC, SEMANTIC),
    open_tools=open_tools,
    policy=search_memories,
    builder=_builder,
    keeper=_keeper,
    rounds=SETTINGS.rounds,
    parts=PARTS,
    part_tools={LASTING: SEMANTIC.name},
)
