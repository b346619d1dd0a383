"""The VAM strategy as it is registered: recoverable moments, documents of events, anchored times.

Its documents are written and its questions answered by rules, or by a language model where the
profile has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.strategy import AgentPolicy, PolicyParts, RunTool, Strategy, Tool
from strategies.vam.policy import FRAMES, INSPECT, SEARCH, SUMMARIZE, LocalWalk, PlanningPolicy
from strategies.vam.settings import (
    LOOKING,
    PARTS,
    SUMMARIES,
    FrameArguments,
    InspectArguments,
    SearchArguments,
    SummarizeArguments,
    VisualMemorySettings,
)
from strategies.vam.visual_memory import tier_names

if TYPE_CHECKING:
    from agent.builder import MemoryBuilder
    from models.profile import Profile
    from models.toolbox import Toolbox
    from perception.frame_keeper import FrameKeeper
    from store.database import Store

NAME = "vam"
SETTINGS = VisualMemorySettings()

TOOLS = (
    Tool(
        name=SEARCH,
        description="Finds frames, events and summaries, within times that may be anchored.",
        arguments=SearchArguments,
    ),
    Tool(
        name=FRAMES,
        description="Finds kept frames by what they show; needs an image-text model.",
        arguments=FrameArguments,
    ),
    Tool(
        name=INSPECT,
        description="Looks at kept frames of a span or of earlier results with a question.",
        arguments=InspectArguments,
    ),
    Tool(
        name=SUMMARIZE,
        description="Summarises a span in windows of any length; the summaries are kept.",
        arguments=SummarizeArguments,
    ),
)


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the tools, which share what the strategy keeps."""
    # Imports OpenCV, which only the tools need.
    from strategies.vam.inspection import opened_tools

    return opened_tools(store, toolbox, NAME)


def offered(profile: Profile) -> tuple[str, ...]:
    """Return the tools that a profile has the models for: frames are found by text with one."""
    names = [tool.name for tool in TOOLS]
    return tuple(name for name in names if name != FRAMES or profile.images is not None)


def answer_from_memory(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    return LocalWalk(parts) if parts.calls is None else PlanningPolicy(parts, parts.calls)


def _builder() -> MemoryBuilder:
    # Slow to import, and needed only to build.
    from strategies.vam.builder import EventBuilder

    return EventBuilder(SETTINGS)


def _keeper() -> FrameKeeper:
    # Imports OpenCV, which only watching needs.
    from strategies.vam.visual_memory import MomentKeeper

    return MomentKeeper(SETTINGS)


STRATEGY = Strategy(
    name=NAME,
    title="moments and events of frames that fade with age, and documents of events",
    paper="Visual Agentic Memory",
    builds="frames of moments, thinned out with age, and a document of each event",
    needs="homer build VIDEO; without an image-text model frames are not found by text",
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
    part_tools={SUMMARIES: SUMMARIZE, LOOKING: INSPECT},
    tiers=tier_names(SETTINGS),
)
