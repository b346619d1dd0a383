"""The VAM strategy as it is registered: recoverable moments, documents of events, anchored times.

Its documents are written and its questions answered by rules, or by a language model where the
profile has one.
"""

from __future__ import annotations

from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.later import Later
from strategies.vam import settings
from strategies.vam.policy import FRAMES, INSPECT, SEARCH, SUMMARIZE, LocalWalk, PlanningPolicy
from strategies.vam.visual_memory import tier_names

NAME = "vam"
SETTINGS = settings.VisualMemorySettings()
# They import OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.vam.inspection"), Later("strategies.vam.builder")
KEEP = Later("strategies.vam.visual_memory")

TOOLS = (
    Tool(
        name=SEARCH,
        description="Finds frames, events and summaries, within times that may be anchored.",
        arguments=settings.SearchArguments,
    ),
    Tool(
        name=FRAMES,
        description="Finds kept frames by what they show; needs an image-text model.",
        arguments=settings.FrameArguments,
        needs=lambda profile: profile.images is not None,
    ),
    Tool(
        name=INSPECT,
        description="Looks at kept frames of a span or of earlier results with a question.",
        arguments=settings.InspectArguments,
    ),
    Tool(
        name=SUMMARIZE,
        description="Summarises a span in windows of any length; the summaries are kept.",
        arguments=settings.SummarizeArguments,
    ),
)


def answer_from_memory(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    return LocalWalk(parts) if parts.calls is None else PlanningPolicy(parts, parts.calls)


STRATEGY = Strategy(
    name=NAME,
    title="moments and events of frames that fade with age, and documents of events",
    paper="Visual Agentic Memory",
    builds="frames of moments, thinned out with age, and a document of each event",
    needs="homer build VIDEO; without an image-text model frames are not found by text",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.opened_tools(store, toolbox, NAME),
    policy=answer_from_memory,
    builder=lambda: BUILD.event_builder(SETTINGS),
    keeper=lambda: KEEP.moment_keeper(SETTINGS),
    rounds=SETTINGS.rounds,
    parts=settings.PARTS,
    part_tools={settings.SUMMARIES: SUMMARIZE, settings.LOOKING: INSPECT},
    tiers=tier_names(SETTINGS),
)
