"""Which tools MemDreamer uses where parts of it are switched off."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent.strategy import Tool
from strategies.memdreamer.names import (
    GET_MACRO_EVENTS,
    GET_RELATIONS,
    GET_SUBGRAPH,
    GET_SUMMARY,
    GET_SUPER_EVENTS,
)
from strategies.memdreamer.parts import GRAPH, HIERARCHY

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
