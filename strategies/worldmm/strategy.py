"""The WorldMM strategy as it is registered, and its policies: memory at time scales, as graphs.

Its memory is written and searched by rules, or by a language model where the profile has one.
"""

from __future__ import annotations

from agent.model_calls import Calls
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.strategy import AgentPolicy, PolicyParts, SearchEach, Strategy, Tool
from domain.asking import Action
from domain.built import OutlineLevel
from domain.later import Later
from strategies.policy_parts import AskingPolicy, use_tool
from strategies.worldmm.captions import level_of
from strategies.worldmm.replies import (
    decide_form,
    decide_page,
    decide_system,
    find_span,
    history_of,
    respond_form,
    respond_page,
    respond_system,
)
from strategies.worldmm.settings import PARTS, MemoryArguments, VisualArguments, WorldMemorySettings
from strategies.worldmm.settings import SEMANTIC as LASTING
from strategies.worldmm.settings import VISUAL as IMAGES

NAME = "worldmm"
SETTINGS = WorldMemorySettings()
# They import scipy, OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.worldmm.search"), Later("strategies.worldmm.builder")


EPISODIC = Tool(
    name="episodic",
    description="Finds captions at four time scales, by the entities and triples they share.",
    arguments=MemoryArguments,
)
SEMANTIC = Tool(
    name="semantic",
    description="Finds what lasts: habits, relations and attributes of people and things.",
    arguments=MemoryArguments,
)
VISUAL = Tool(
    name="visual",
    description="Finds kept frames of a stretch of time, as in 12:30 - 12:50, or, where the "
    "profile has an image-text model, by what they show.",
    arguments=VisualArguments,
    # Rules look at no image, and are shown what was recognised on it.
    needs=lambda profile: profile.reasoner == "local" or profile.chat_for("reasoner").images,
)
NOTE = "WorldMM's memory was searched by rules."


def search_memories(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else each memory is searched once."""
    if parts.calls is not None:
        return ModelPolicy(parts, parts.calls)
    reasons = {tool.name: tool.description for tool in parts.tools if tool is not VISUAL}
    walk = SearchNamedTime if VISUAL in parts.tools else SearchEach
    return walk(parts, reasons, "each memory was searched", NOTE)


class SearchNamedTime(SearchEach):
    """Searches each memory once, and images first where an open question names their time.

    Rules cannot look at images: they know what was recognised on them.
    """

    def act(self, decision: DecisionContext) -> Action:
        """Look at the time that the question names; then go on as with any question."""
        question = decision.question
        looked = any(search.found.mode == VISUAL.name for search in decision.searches)
        if looked or question.options or find_span(question.text) is None:
            return super().act(decision)
        reason = "the question names a time"
        return Action(kind="search", reason=reason, mode=VISUAL.name, query=question.text)


DECIDE_SHARE, RESPOND_SHARE = 8, 4
"""The images of a call take at most one part in so many of the tokens that are left."""


def image_note(parts: PolicyParts) -> str:
    """Return what the profile cannot do with images; "" where it can or they are switched off."""
    if IMAGES in parts.without:
        return ""
    if all(tool.name != IMAGES for tool in parts.tools):
        return "The model does not see: no images were searched."
    return "" if parts.image_model else "Images were found by time only: no image-text model."


# It searches one memory a round, or has it answered. The whole history goes into each request;
# another call answers from it.
class ModelPolicy(AskingPolicy):
    """Decides and answers by calls to the language model.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        super().__init__(parts, calls, image_note(parts))
        self._by_words = bool(parts.image_model)
        self._memories = tuple(tool.name for tool in parts.tools)

    def act(self, decision: DecisionContext) -> Action:
        """Search one of the offered memories with one query, or answer."""
        rounds, searches = self._settings.rounds, decision.searches
        history = history_of(search.found for search in searches)
        page = decide_page(decision.question, history, decision.round, rounds, decision.complaint)
        reply = self._ask(
            decision,
            "decide",
            decide_system(rounds, self._memories, by_words=self._by_words),
            page,
            decide_form(self._memories, searched=bool(searches), narrow=self._calls.in_process),
            shown=self._pictures(decision, DECIDE_SHARE),
        )
        if wrong := reply.complaints(self._memories, by_words=self._by_words):
            raise Unreadable("; ".join(wrong))
        return reply.decision()

    def rescue(self, decision: DecisionContext) -> Action:
        """Search the next memory with the question, each once; then answer."""
        made = {search.found.mode for search in decision.searches}
        why = "no reply was an action that can be carried out"
        for memory in self._memories:
            # A question describes no image.
            if memory not in made and memory != IMAGES:
                return use_tool(memory, why, decision.question.text)
        return Action(kind="answer", reason=why)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        question = decision.question
        history = history_of(search.found for search in decision.searches)
        shown = self._pictures(decision, RESPOND_SHARE)
        refs = [piece.ref for piece in decision.held]
        reply = self._ask(
            decision,
            "respond",
            respond_system(images=bool(shown.images)),
            respond_page(question, history, decision.complaint),
            respond_form(len(question.options), refs, narrow=self._calls.in_process),
            shown=shown,
            last=True,
        )
        return reply.conclusion(options=bool(question.options))


TOOLS = (EPISODIC, SEMANTIC, VISUAL)

LEVELS = tuple(
    OutlineLevel(level_of(scale), "caption", titled=False)
    for scale in sorted({*SETTINGS.scales_ms, *SETTINGS.short_scales_ms}, reverse=True)
)
"""The levels of outlines, coarse ones first; a video has those of its length."""

STRATEGY = Strategy(
    name=NAME,
    title="captions at four time scales as graphs of entities, and what lasts",
    paper="WorldMM",
    builds="captions at four scales with entities and triples, what recurs, and a frame of 10 s",
    needs="homer build VIDEO; its rules read English; for images a model that sees, and by words "
    "also an image-text model",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.opened_tools(store, toolbox, NAME, SETTINGS),
    policy=search_memories,
    builder=lambda: BUILD.world_builder(SETTINGS),
    keeper=lambda: BUILD.segment_keeper(SETTINGS),
    rounds=SETTINGS.rounds,
    levels=LEVELS,
    parts=PARTS,
    part_tools={LASTING: SEMANTIC.name, IMAGES: VISUAL.name},
)
