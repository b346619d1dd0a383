"""The HOMER strategy as it is registered."""

from __future__ import annotations

from agent.strategy import Strategy
from domain.trajectory import MACHINE_VERSION, OLDEST_REPLAYED
from strategies.homer.tools import MODE_TOOLS, open_modes

STRATEGY = Strategy(
    name="homer",
    title="plans, keeps a ledger of subtasks, and searches an event graph in four modes",
    paper="HOMER: Hierarchical Online Memory Exploration and Reasoning",
    builds="lines of memory, and an event graph of segments with edges",
    needs="nothing: a language model decides better than rules",
    version=MACHINE_VERSION,
    oldest_replayed=OLDEST_REPLAYED,
    machine="homer",
    tools=MODE_TOOLS,
    open_tools=open_modes,
)
