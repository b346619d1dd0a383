"""The EventMemAgent strategy as it is registered: a short memory of frames, a long one of events.

Its long-term memory is written and its questions answered by rules, or by a language model where
the profile has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import AgentPolicy, PolicyParts, RunTool, Strategy, Tool
from models.profile import NO_MODEL
from strategies.eventmem.policy import DETECT, OCR, SEARCH, SHORT, MemoryWalk, ReactPolicy
from strategies.eventmem.settings import (
    LONG_TERM,
    PARTS,
    SHORT_TERM,
    DetectArguments,
    EventMemorySettings,
    ReadingArguments,
    SearchMemoryArguments,
    ShortTermArguments,
)

if TYPE_CHECKING:
    from agent.builder import MemoryBuilder
    from models.profile import Profile
    from models.toolbox import Toolbox
    from perception.frame_keeper import FrameKeeper, HeldEvent, State
    from store.database import Store

NAME = "eventmem"
SETTINGS = EventMemorySettings()

TOOLS = (
    Tool(
        name=SHORT,
        description="Returns the frames of the short-term memory, numbered, and what came since.",
        arguments=ShortTermArguments,
    ),
    Tool(
        name=SEARCH,
        description="Finds events of the long-term memory by a query or a stretch of time.",
        arguments=SearchMemoryArguments,
    ),
    Tool(
        name=OCR,
        description="Reads the text on a kept frame, or on those of an event.",
        arguments=ReadingArguments,
    ),
    Tool(
        name=DETECT,
        description="Detects things of some labels on a kept frame, or on those of an event.",
        arguments=DetectArguments,
    ),
)


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the tools, which share what the strategy keeps."""
    # Imports OpenCV, which only the tools need.
    from strategies.eventmem.tools import opened_tools

    return opened_tools(store, toolbox, NAME, SETTINGS)


def offered(profile: Profile) -> tuple[str, ...]:
    """Return the tools that a profile has the models for."""
    names = [tool.name for tool in TOOLS]
    return tuple(name for name in names if name != DETECT or profile.objects != NO_MODEL)


def answer_from_memory(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    return MemoryWalk(parts) if parts.calls is None else ReactPolicy(parts, parts.calls)


def _builder() -> MemoryBuilder:
    # Slow to import, and needed only to build.
    from strategies.eventmem.builder import LongMemoryBuilder

    return LongMemoryBuilder(SETTINGS)


def _keeper() -> FrameKeeper:
    # Imports OpenCV, which only watching needs.
    from strategies.eventmem.event_memory import EventKeeper

    return EventKeeper(SETTINGS)


def _short_term(carried: State) -> list[HeldEvent]:
    # Imports OpenCV, which only watching needs.
    from strategies.eventmem.event_memory import held_events

    return held_events(carried)


STRATEGY = Strategy(
    name=NAME,
    title="a short-term memory of 32 frames in events, and a long-term one of events",
    paper="EventMemAgent",
    builds="a sample of frames of the last events, the first of each, and how events change",
    needs="homer build VIDEO; frames are kept while watching, or from a file that is there",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=open_tools,
    policy=answer_from_memory,
    builder=_builder,
    keeper=_keeper,
    rounds=SETTINGS.rounds,
    offered=offered,
    parts=PARTS,
    part_tools={SHORT_TERM: SHORT, LONG_TERM: SEARCH},
    short_term=_short_term,
    tiers=("short-term memory", "long-term memory: the first frame of each event"),
)
