"""The HOMER strategy as it is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import Strategy
from strategies.homer.tools import MODE_TOOLS, open_modes

if TYPE_CHECKING:
    from agent.builder import WindowBuilder


def _windows() -> WindowBuilder:
    # Lists of strategies do without what builds them.
    from strategies.homer.event_graph_builder import EventGraphBuilder

    return EventGraphBuilder()


STRATEGY = Strategy(
    name="homer",
    title="plans, keeps a ledger of subtasks, and searches an event graph in four modes",
    paper="HOMER: Hierarchical Online Memory Exploration and Reasoning",
    builds="an event graph: segments with temporal and causal edges",
    needs="nothing: a language model decides better than rules",
    version=2,
    machine="homer",
    tools=MODE_TOOLS,
    open_tools=open_modes,
    windows=_windows,
)
