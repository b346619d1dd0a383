"""The arguments of MemDreamer's seven tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from agent.strategy import Options, ToolArguments
from domain.time import parse_clock
from strategies.memdreamer.settings import HierarchySettings

MOST_FOUND, MOST_IDS = 50, 20
"""Nodes that a search finds, and macro events that are named at a time, at most."""


def _bare(value: Any) -> Any:
    """Take an id without the brackets that it is shown in."""
    return value.strip().strip("[]") if isinstance(value, str) else value


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) else value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Node = Annotated[str, BeforeValidator(_bare), StringConstraints(pattern=r"^n[1-9]\d{0,17}$")]
"""The ref of a node, as in n12."""
Vertex = Annotated[str, BeforeValidator(_bare), StringConstraints(pattern=r"^[ne][1-9]\d{0,17}$")]
"""The ref of a node or an entity, as in n12 or e7."""
Clock = Annotated[str, BeforeValidator(_text)]
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
        """Return the start in milliseconds."""
        return parse_clock(self.start)

    @property
    def end_ms(self) -> int:
        """Return the end in milliseconds."""
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
