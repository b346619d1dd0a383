"""The WorldMM strategy as it is registered: memory at several time scales, as graphs.

Its memory is written and searched by rules, or by a language model where the profile has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import AgentPolicy, PolicyParts, SearchEach, Strategy, Tool
from domain.asking import Action
from domain.built import OutlineLevel
from domain.later import Later
from strategies.worldmm.captions import level_of
from strategies.worldmm.replies import find_span
from strategies.worldmm.settings import PARTS, MemoryArguments, VisualArguments, WorldMemorySettings
from strategies.worldmm.settings import SEMANTIC as LASTING
from strategies.worldmm.settings import VISUAL as IMAGES

if TYPE_CHECKING:
    from agent.reasoners.port import DecisionContext

NAME = "worldmm"
SETTINGS = WorldMemorySettings()
# They import scipy, OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.worldmm.search"), Later("strategies.worldmm.builder")
KEEP = Later("strategies.worldmm.builder")


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
VISUAL = Tool(
    name="visual",
    description="Finds kept frames of a stretch of time, as in 12:30 - 12:50, or, where the "
    "profile has an image-text model, by what they show.",
    arguments=VisualArguments,
    # Rules look at no image, and are shown what was recognised on it.
    needs=lambda profile: profile.reasoner == "local" or profile.chat_for("reasoner").images,
)
NOTE = "WorldMM's memory was searched by rules."


def search_memories(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else each memory is searched once."""
    if parts.calls is not None:
        # Imports scipy, which takes half a second.
        from strategies.worldmm.policy import ModelPolicy

        return ModelPolicy(parts, parts.calls)
    reasons = {tool.name: tool.description for tool in parts.tools if tool is not VISUAL}
    walk = SearchNamedTime if VISUAL in parts.tools else SearchEach
    return walk(parts, reasons, "each memory was searched", NOTE)


class SearchNamedTime(SearchEach):
    """Searches each memory once, and images first where an open question names their time.

    Rules cannot look at images: they know what was recognised on them.
    """

    def act(self, decision: DecisionContext) -> Action:
        """Look at the time that the question names; then go on as with any question."""
        question = decision.question
        looked = any(search.found.mode == VISUAL.name for search in decision.searches)
        if looked or question.options or find_span(question.text) is None:
            return super().act(decision)
        reason = "the question names a time"
        return Action(kind="search", reason=reason, mode=VISUAL.name, query=question.text)


TOOLS = (EPISODIC, SEMANTIC, VISUAL)

LEVELS = tuple(
    OutlineLevel(level_of(scale), "caption", titled=False)
    for scale in sorted({*SETTINGS.scales_ms, *SETTINGS.short_scales_ms}, reverse=True)
)
"""The levels of outlines, coarse ones first; a video has those of its length."""

STRATEGY = Strategy(
    name=NAME,
    title="captions at four time scales as graphs of entities, and what lasts",
    paper="WorldMM",
    builds="captions at four scales with entities and triples, what recurs, and a frame of 10 s",
    needs="homer build VIDEO; its rules read English; for images a model that sees, and by words "
    "also an image-text model",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.opened_tools(store, toolbox, NAME, SETTINGS),
    policy=search_memories,
    builder=lambda: BUILD.world_builder(SETTINGS),
    keeper=lambda: KEEP.segment_keeper(SETTINGS),
    rounds=SETTINGS.rounds,
    levels=LEVELS,
    parts=PARTS,
    part_tools={LASTING: SEMANTIC.name, IMAGES: VISUAL.name},
)
