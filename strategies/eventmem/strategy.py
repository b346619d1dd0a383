"""The EventMemAgent strategy as it is registered: a short memory of frames, a long one of events.

Its long-term memory is written and its questions answered by rules, or by a language model where
the profile has one.
"""

from __future__ import annotations

from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.later import Later
from models.profile import NO_MODEL
from strategies.eventmem import settings
from strategies.eventmem.policy import DETECT, OCR, SEARCH, SHORT, MemoryWalk, ReactPolicy

NAME = "eventmem"
SETTINGS = settings.EventMemorySettings()
# They import OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.eventmem.tools"), Later("strategies.eventmem.long_term")
KEEP = Later("strategies.eventmem.event_memory")

TOOLS = (
    Tool(
        name=SHORT,
        description="Returns the frames of the short-term memory, numbered, and what came since.",
        arguments=settings.ShortTermArguments,
    ),
    Tool(
        name=SEARCH,
        description="Finds events of the long-term memory by a query or a stretch of time.",
        arguments=settings.SearchMemoryArguments,
    ),
    Tool(
        name=OCR,
        description="Reads the text on a kept frame, or on those of an event.",
        arguments=settings.ReadingArguments,
    ),
    Tool(
        name=DETECT,
        description="Detects things of some labels on a kept frame, or on those of an event.",
        arguments=settings.DetectArguments,
        needs=lambda profile: profile.objects != NO_MODEL,
    ),
)


def answer_from_memory(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    return MemoryWalk(parts) if parts.calls is None else ReactPolicy(parts, parts.calls)


STRATEGY = Strategy(
    name=NAME,
    title="a short-term memory of 32 frames in events, and a long-term one of events",
    paper="EventMemAgent",
    builds="a sample of frames of the last events, the first of each, and how events change",
    needs="homer build VIDEO; frames are kept while watching, or from a file that is there",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.EventTools(store, toolbox, NAME, SETTINGS).by_name(),
    policy=answer_from_memory,
    builder=lambda: BUILD.long_memory_builder(SETTINGS),
    keeper=lambda: KEEP.event_keeper(SETTINGS),
    rounds=SETTINGS.rounds,
    parts=settings.PARTS,
    part_tools={settings.SHORT_TERM: SHORT, settings.LONG_TERM: SEARCH},
    short_term=lambda carried: KEEP.held_events(carried),
    tiers=("short-term memory", "long-term memory: the first frame of each event"),
)
