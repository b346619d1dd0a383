"""The VAM strategy as it is registered, and its policies.

Its documents are written and its questions answered by rules (a fixed walk), or by a language model
where the profile has one (it plans each action).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agent.model_calls import Calls
from agent.reasoners.concluding import QuestionKind, kind_of
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.asking import Action, Evidence
from domain.later import Later
from domain.words import one_line
from models.messages import prompts_beside
from strategies.asked import question_block
from strategies.policy_parts import (
    AskingPolicy,
    RuleWalk,
    ask_sound,
    last_noted,
    options_argument,
    use_tool,
)
from strategies.vam import settings
from strategies.vam.builder import (
    BestRef,
    PlannedAnswer,
    PlannedInspection,
    PlannedReply,
    PlannedSearch,
    PlannedSummary,
    RouteReply,
    conclude_page,
    history_of,
    plan_form,
    plan_page,
    plan_system,
)
from strategies.vam.settings import LOOKING, SUMMARIES
from strategies.vam.times import timed_question
from strategies.vam.visual_memory import tier_names

NAME = "vam"
SETTINGS = settings.VisualMemorySettings()
# They import OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.vam.tools"), Later("strategies.vam.builder")
KEEP = Later("strategies.vam.visual_memory")


prompt = prompts_beside(__file__)

SEARCH, FRAMES, INSPECT, SUMMARIZE = "search", "frames", "inspect", "summarize"
"""The names of VAM's tools."""
LAST_TURNS = 2
"""So many turns before the end it answers."""
TEMPERATURE = 0.1
LOCAL_FRAMES = 4
"""Frames that are looked at by rules."""
DECIDE_SHARE, ANSWER_SHARE = 8, 4
"""The images of a call take at most one part in so many of the tokens that are left."""
NO_IMAGES = "Frames were not searched by text: the profile has no image-text model."
NOTE = "VAM's memory was searched by rules."


class LocalWalk(RuleWalk):
    """Searches once, after a summary where the question is broad; looks where it asks for looks.

    A time of day that the question names is searched first; of files it is not known, so they are
    searched as for any question.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts) -> None:
        frames = any(tool.name == FRAMES for tool in parts.tools)
        super().__init__(parts, NOTE, "" if frames else NO_IMAGES)

    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk."""
        question, made = decision.question, [one.found for one in decision.searches]
        timed = timed_question(question.text)
        if timed is not None and not made:
            more = {"times": timed.times.model_dump(), **options_argument(question)}
            return use_tool(SEARCH, "the question names a time of day", timed.query, **more)
        modes = {str(one.mode) for one in made if not (one.refused and "times" in one.arguments)}
        kind = kind_of(question.text)
        broad = kind is QuestionKind.BROAD and not question.options
        if broad and SUMMARIZE not in modes and SUMMARIES not in self._without:
            return use_tool(SUMMARIZE, "the question is about a longer time")
        if SEARCH not in modes:
            options = options_argument(question)
            return use_tool(SEARCH, "the documents that match best", question.text, **options)
        best = max((p for one in made for p in one.evidence), key=lambda p: p.score, default=None)
        looks = kind is QuestionKind.LOOKS and LOOKING not in self._without
        if looks and INSPECT not in modes and best is not None:
            wanted: dict[str, Any] = {"refs": [best.ref], "frames": LOCAL_FRAMES}
            return use_tool(INSPECT, "the question asks what is seen", question.text, **wanted)
        return Action(kind="answer", reason="the walk is done")


class PlanningPolicy(AskingPolicy):
    """Routes the question, then plans each action with the language model.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        offered = [tool.name for tool in parts.tools]
        super().__init__(parts, calls, "" if FRAMES in offered else NO_IMAGES)
        off = {INSPECT} if LOOKING in parts.without else set()
        off |= {SUMMARIZE} if SUMMARIES in parts.without else set()
        self._tools = [name for name in (SEARCH, INSPECT, SUMMARIZE) if name not in off]
        self._sources = [
            *(["frame"] if FRAMES in offered and INSPECT not in off else []),
            "event",
            *(["summary"] if SUMMARIZE not in off else []),
        ]

    def act(self, decision: DecisionContext) -> Action:
        """Route in the first round; then plan. What cannot be read becomes a permissive search."""
        if decision.round == 1 and not decision.searches and not decision.complaint:
            routed = self._route(decision)
            if routed is not None:
                return routed
        if self._is_done(decision):
            return Action(kind="answer", reason="nothing improves, or the rounds end")
        try:
            reply = self._plan(decision)
            planned = reply.action
            reason = one_line(reply.reason)
            if isinstance(planned, PlannedAnswer):
                return Action(kind="answer", reason=reason, note=planned.model_dump_json())
            if isinstance(planned, PlannedSummary):
                kept = planned.model_dump(
                    mode="json", exclude={"kind", "prompt"}, exclude_none=True
                )
                return use_tool(SUMMARIZE, reason, planned.prompt, **kept)
            if isinstance(planned, PlannedInspection):
                kept = planned.model_dump(
                    mode="json", exclude={"kind", "question"}, exclude_none=True
                )
                return use_tool(INSPECT, reason, planned.question or decision.question.text, **kept)
            kept = planned.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
            kept["sources"] = kept["sources"] or self._sources
            return use_tool(SEARCH, reason, **kept)
        except Unreadable:
            return self.rescue(decision)

    def rescue(self, decision: DecisionContext) -> Action:
        """Search permissively with the question; if that was done, answer."""
        action = use_tool(SEARCH, "no reply could be carried out", decision.question.text)
        made = [(str(one.found.mode), one.found.query) for one in decision.searches]
        if (SEARCH, action.query) in made:
            return Action(kind="answer", reason=action.reason)
        return action

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer as planned, or ask for the answer now."""
        planned = last_noted(decision.notes, PlannedAnswer)
        if planned is None or decision.complaint:
            history = history_of(one.found for one in decision.searches)
            page = conclude_page(decision.question, history, decision.complaint)
            reply = self._ask(
                decision,
                "conclude",
                plan_system(self._settings.rounds, (), self._sources),
                page,
                plan_form(["answer"], self._sources),
                shown=self._pictures(decision, ANSWER_SHARE),
                last=True,
                temperature=TEMPERATURE,
            )
            if not isinstance(reply.action, PlannedAnswer):
                raise Unreadable("answer the question: no other action is left")
            planned = reply.action
        option = (planned.option or "").strip()
        best = best_result(decision, planned.best_ref)
        options = bool(decision.question.options)
        return Conclusion(
            text=one_line(planned.answer) or option,
            option=option or None,
            refs=() if best is None else (best.ref,),
            not_in_memory=best is None or not (planned.found or options),
        )

    def _route(self, decision: DecisionContext) -> Action | None:
        """Return the first action where the router says so; None: it is planned."""
        rules = prompt("route_system")
        page = prompt("route", question=question_block(decision.question))
        try:
            reply = self._ask(decision, "route", rules, page, RouteReply, temperature=TEMPERATURE)
        except Unreadable:
            return None
        if reply.route == "answer":
            return Action(kind="answer", reason=reply.reason)
        if reply.route == "summarize" and SUMMARIZE in self._tools:
            return use_tool(SUMMARIZE, reply.reason, decision.question.text)
        return None

    def _is_done(self, decision: DecisionContext) -> bool:
        """Check whether the rounds end, or the last two turns found nothing better than before."""
        made = [one.found for one in decision.searches]
        if not made:
            return False
        if decision.round > self._settings.rounds - LAST_TURNS:
            return True
        before = {piece.ref for one in made[:-LAST_TURNS] for piece in one.evidence}
        lately = {piece.ref for one in made[-LAST_TURNS:] for piece in one.evidence}
        return len(made) > LAST_TURNS and lately <= before

    def _plan(self, decision: DecisionContext) -> PlannedReply:
        """Ask for an action, once more if the reply cannot be used.

        Raises:
            Unreadable: it cannot be used then either.
        """
        rounds = self._settings.rounds
        history = history_of(one.found for one in decision.searches)
        page = plan_page(decision.question, history, decision.round, rounds, decision.complaint)
        kinds = [*self._tools, *(["answer"] if decision.searches else [])]
        loaded = self._pictures(decision, DECIDE_SHARE)
        return ask_sound(
            partial(self._calls.ask, round=decision.round),
            "plan",
            plan_system(rounds, self._tools, self._sources),
            page,
            plan_form(kinds, self._sources),
            lambda reply: self._complaints(reply, kinds),
            strict=True,
            temperature=TEMPERATURE,
            images=loaded.images,
            labels=loaded.labels,
        )

    def _complaints(self, reply: PlannedReply, kinds: Sequence[str]) -> list[str]:
        action = reply.action
        if action.kind not in kinds:
            return [f"take one of these actions: {', '.join(kinds)}"]
        if isinstance(action, PlannedSearch):
            off = [str(one) for one in action.sources if one not in self._sources]
            return [f"{one} is no source here" for one in off]
        return []


def best_result(decision: DecisionContext, best: BestRef | None) -> Evidence | None:
    """Return the result that is named; the one with the best score where none has that place."""
    made = [one.found for one in decision.searches]
    held = {piece.ref for piece in decision.held}
    if best is not None and 1 <= best.turn <= len(made):
        found = made[best.turn - 1].evidence
        if 0 <= best.result < len(found) and found[best.result].ref in held:
            return found[best.result]
    return max(decision.held, key=lambda piece: piece.score, default=None)


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
