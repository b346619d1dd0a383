"""The MemDreamer strategy as it is registered: a hierarchy above graphs, seven tools, one note."""

from __future__ import annotations

from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.built import OutlineLevel
from domain.later import Later
from strategies.memdreamer import settings
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, VERTEX_KINDS
from strategies.memdreamer.policy import FixedWalk, NotePolicy

NAME = "memdreamer"
SETTINGS = settings.HierarchySettings()
# They import scipy and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.memdreamer.tools"), Later("strategies.memdreamer.builder")
REPAIRS = 1
"""How often a reply that cannot be used is sent back."""


TOOLS = (
    Tool(
        name=settings.GET_SUMMARY,
        description="what the whole video is, and its super events.",
        arguments=settings.SummaryArguments,
    ),
    Tool(
        name=settings.GET_SUPER_EVENTS,
        description="all super events and how they lead to each other, or one with what is in it.",
        arguments=settings.SuperEventsArguments,
    ),
    Tool(
        name=settings.GET_MACRO_EVENTS,
        description="summaries and key entities of the macro events of a super event, or of these.",
        arguments=settings.MacroEventsArguments,
    ),
    Tool(
        name=settings.GET_SUBGRAPH,
        description="opens a macro event: its entities, events, screen text and their edges.",
        arguments=settings.SubgraphArguments,
    ),
    Tool(
        name=settings.SEARCH_NODES,
        description="finds entities, events and screen text near to the query, with neighbours.",
        arguments=settings.NodesArguments,
    ),
    Tool(
        name=settings.SEARCH_BY_TIME,
        description="what there is between two times, such as 12:30 and 12:50.",
        arguments=settings.TimeArguments,
    ),
    Tool(
        name=settings.GET_RELATIONS,
        description="what edges lead from and to a node or an entity.",
        arguments=settings.RelationsArguments,
    ),
)


def walk(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    if parts.calls is not None:
        return NotePolicy(parts, parts.calls)
    return FixedWalk(parts)


LEVELS = (
    OutlineLevel(ROOT, "whole video"),
    OutlineLevel(SUPER, "super event"),
    OutlineLevel(MACRO, "macro event"),
    OutlineLevel(EVENT, "event", titled=False),
)
"""The levels of outlines, coarse ones first."""

STRATEGY = Strategy(
    name=NAME,
    title="a hierarchy of events above graphs of who does what with what",
    paper="MemDreamer",
    builds="macro events with their graphs, super events above them, and the whole",
    needs="homer build VIDEO; its rules read English",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.HierarchyTools(store, toolbox, NAME).by_name(),
    policy=walk,
    builder=lambda: BUILD.hierarchy_builder(SETTINGS),
    rounds=SETTINGS.rounds + 1,
    retries=REPAIRS,
    tokens=(SETTINGS.rounds + 1) * SETTINGS.round_tokens,
    parts=settings.PARTS,
    levels=LEVELS,
    node_types={kind: level for level, kind in VERTEX_KINDS.items()},
)
"""The look at the whole before the first round is a round of the machine."""
