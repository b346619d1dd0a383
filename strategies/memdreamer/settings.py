"""The numbers of MemDreamer with the paper's defaults, its parts, and its tools' arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PositiveInt, StringConstraints, model_validator

from agent.strategy import Options, Tool, ToolArguments
from domain.base import Frozen
from domain.time import parse_clock

# The numbers of MemDreamer, with the paper's defaults.

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""

Limits = tuple[PositiveInt, PositiveInt]
"""The least and the most of something."""


class HierarchySettings(Frozen):
    """Settings of MemDreamer's hierarchy, tools and loop.

    A window of ``window_ms`` at most is cut into macro events; a model is asked for some of
    ``episode_ms``. A super event has ``super_macros`` macro events; of videos of ``long_video_ms``
    and more there are ``long_supers`` super events. A label has fewer than ``label_words`` words, a
    description of a super event ``super_words``; the root has ``themes`` and ``root_entities``.
    A round sends ``round_tokens`` at most, and the budget of a run is for all of them.
    """

    window_ms: PositiveInt = 10 * MINUTE
    episode_ms: Limits = (3 * MINUTE, 8 * MINUTE)
    key_entities: PositiveInt = 10

    super_macros: Limits = (3, 8)
    long_video_ms: PositiveInt = HOUR
    long_supers: Limits = (10, 20)
    label_words: PositiveInt = 10
    super_words: Limits = (100, 200)
    root_sentences: Limits = (3, 5)
    themes: Limits = (3, 5)
    root_entities: Limits = (5, 10)

    found: PositiveInt = 10
    rounds: PositiveInt = 12
    round_tokens: PositiveInt = 6_500

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        pairs = (self.episode_ms, self.super_macros, self.long_supers, self.super_words)
        for least, most in (*pairs, self.root_sentences, self.themes, self.root_entities):
            if least > most:
                raise ValueError(f"the least, {least}, is more than the most, {most}")
        if self.episode_ms[0] > self.window_ms:
            raise ValueError("episodes are longer than the windows that they are cut from")
        return self


# The parts of MemDreamer that can be switched off, to measure what each adds.

GRAPH, HIERARCHY = "graph", "hierarchy"

PARTS = {
    GRAPH: "entities and edges: micro-events and screen text stand alone",
    HIERARCHY: "root, super events and summaries: only nodes are searched",
}
"""Without both it is flat: a search of micro-events and screen text."""


# The names of MemDreamer's seven tools.

GET_SUMMARY, GET_SUPER_EVENTS = "get_summary", "get_super_events"
GET_MACRO_EVENTS, GET_SUBGRAPH = "get_macro_events", "get_subgraph"
SEARCH_NODES, SEARCH_BY_TIME, GET_RELATIONS = "search_nodes", "search_by_time", "get_relations"


# Which tools MemDreamer uses where parts of it are switched off.

OF_HIERARCHY = frozenset({GET_SUMMARY, GET_SUPER_EVENTS, GET_MACRO_EVENTS})


def usable_tools(tools: Iterable[Tool], without: Collection[str]) -> tuple[Tool, ...]:
    """Return the tools that are left: flat, without both parts, only nodes and times are."""
    off = set[str]()
    if HIERARCHY in without:
        off |= OF_HIERARCHY
    if GRAPH in without:
        off.add(GET_RELATIONS)
    if {HIERARCHY, GRAPH} <= set(without):
        off.add(GET_SUBGRAPH)
    return tuple(tool for tool in tools if tool.name not in off)


# The arguments of MemDreamer's seven tools.

MOST_FOUND, MOST_IDS = 50, 20
"""Nodes that a search finds, and macro events that are named at a time, at most."""


def _bare(value: Any) -> Any:
    """Take an id without the brackets that it is shown in."""
    return value.strip().strip("[]") if isinstance(value, str) else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Node = Annotated[str, BeforeValidator(_bare), StringConstraints(pattern=r"^n[1-9]\d{0,17}$")]
"""The ref of a node, as in n12."""
Vertex = Annotated[str, BeforeValidator(_bare), StringConstraints(pattern=r"^[ne][1-9]\d{0,17}$")]
"""The ref of a node or an entity, as in n12 or e7."""
Clock = Annotated[
    str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)
]
"""A time of the video: MM:SS, H:MM:SS or dN H:MM:SS."""
NodeType = Literal["entity", "event", "text"]
"""What is searched: entities, micro-events, screen text."""
NODE_TYPES: tuple[NodeType, ...] = ("entity", "event", "text")


class ShownArguments(ToolArguments):
    """What to score by what is shown: a query, and options if there are any."""

    options: Options = ()


class SummaryArguments(ShownArguments):
    """Nothing to choose: the whole video and its super events."""


class SuperEventsArguments(ShownArguments):
    """A super event, or all of them."""

    id: Node | None = Field(default=None, description="of a super event: n5; none: all of them")


class MacroEventsArguments(ShownArguments):
    """The macro events of a super event, or these."""

    super_id: Node | None = Field(default=None, description="of a super event: n5")
    macro_ids: Annotated[tuple[Node, ...], BeforeValidator(_listed)] = Field(
        default=(), max_length=MOST_IDS, description="of macro events, instead: n12"
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.super_id is None) == (not self.macro_ids):
            raise ValueError("name either a super_id or macro_ids")
        return self


class SubgraphArguments(ShownArguments):
    """A macro event whose graph is shown."""

    macro_id: Node = Field(description="of a macro event: n12")


class NodesArguments(ShownArguments):
    """What to look for, and among which nodes."""

    query: str = Field(min_length=1)
    top_k: int = Field(default=HierarchySettings().found, ge=1, le=MOST_FOUND)
    node_types: Annotated[tuple[NodeType, ...], BeforeValidator(_listed)] = Field(
        default=NODE_TYPES, min_length=1
    )


class TimeArguments(ShownArguments):
    """A stretch of time."""

    start: Clock = Field(description="12:30, 1:02:30 or 'd2 18:34:00'")
    end: Clock

    @property
    def start_ms(self) -> int:
        return parse_clock(self.start)

    @property
    def end_ms(self) -> int:
        return parse_clock(self.end)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end_ms < self.start_ms:
            raise ValueError(f"the end, {self.end}, is before the start, {self.start}")
        return self


class RelationsArguments(ShownArguments):
    """A node or an entity whose edges are followed, and which way."""

    node_id: Vertex = Field(description="of a node or an entity: n31, e7")
    direction: Literal["out", "in", "both"] = "both"
