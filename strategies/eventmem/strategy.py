"""The EventMemAgent strategy as it is registered, and its policies.

Its long-term memory is written and its questions answered by rules (a fixed walk), or by a language
model where the profile has one (in turns: ReAct).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from agent.harness.inform import quote_untrusted
from agent.model_calls import Calls
from agent.reasoners.concluding import QuestionKind, kind_of
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.reasoners.replies import refs_in
from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.asking import Action, Question
from domain.later import Later
from domain.time import parse_clock
from domain.trajectory import EvidenceRetrieved
from domain.words import one_line
from models.messages import join_lines, prompts_beside
from models.profile import NO_MODEL
from strategies.asked import question_block
from strategies.eventmem import settings
from strategies.eventmem.long_term import AnswerStep, ReactReply
from strategies.eventmem.settings import LONG_TERM, SHORT_TERM
from strategies.policy_parts import (
    AskingPolicy,
    RuleWalk,
    after_complaint,
    last_noted,
    offering,
    options_argument,
    use_tool,
)

NAME = "eventmem"
SETTINGS = settings.EventMemorySettings()
# They import OpenCV and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.eventmem.tools"), Later("strategies.eventmem.long_term")
KEEP = Later("strategies.eventmem.event_memory")


prompt = prompts_beside(__file__)

SHORT, SEARCH, OCR, DETECT = "short_term", "search_memory", "ocr", "detect_objects"
"""The names of the tools."""
MOST_PICTURES = 32
SHARE = 3
"""The images of a call take at most one part in so many of the tokens that are left."""
SHOWN, MOST_SHOWN = 700, 48
"""Characters of a result that the history shows, and results of a turn."""
NEAR_S = 30
"""Seconds about a time that a question names."""
NOTE = "EventMemAgent's memory was searched by rules."
_CLOCK = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")
_READS = re.compile(
    r"\b(read|written|writes?|text|sign|label|title|word|spell|number plate)\b", re.I
)


def first_look(question: Question, without: Iterable[str]) -> Action:
    """Return the first action: a question that names no time is about the short-term memory."""
    options = options_argument(question)
    if named := _CLOCK.search(question.text):
        second = parse_clock(named[0]) / 1_000
        span = {"start_s": max(0.0, second - NEAR_S), "end_s": second + NEAR_S}
        return use_tool(SEARCH, "the question names a time", question.text, **span, **options)
    if SHORT_TERM in without:
        return use_tool(SEARCH, "the long-term memory", question.text, **options)
    return use_tool(SHORT, "the question names no time", question.text, **options)


class MemoryWalk(RuleWalk):
    """Looks at the short-term memory, searches the long-term one, and reads a frame if asked to.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts) -> None:
        super().__init__(parts, NOTE)

    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk."""
        question, made = decision.question, [one.found for one in decision.searches]
        if not made:
            return first_look(question, self._without)
        modes = {str(one.mode) for one in made}
        if SEARCH not in modes and LONG_TERM not in self._without:
            more = options_argument(question)
            return use_tool(SEARCH, "the long-term memory", question.text, **more)
        best = max((p for one in made for p in one.evidence), key=lambda p: p.score, default=None)
        reads = kind_of(question.text) is QuestionKind.LOOKS or _READS.search(question.text)
        if OCR not in modes and reads and best is not None:
            return use_tool(OCR, "the question asks for text or looks", ref=best.ref)
        return Action(kind="answer", reason="the walk is done")

    def rescue(self, decision: DecisionContext) -> Action:
        """Answer from what was found: the step cannot be carried out."""
        if not decision.searches:
            return first_look(decision.question, self._without)
        return Action(kind="answer", reason="the walk ends here")


class ReactPolicy(AskingPolicy):
    """Takes turns of one thought and one action with the language model.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        super().__init__(parts, calls, most=MOST_PICTURES)
        off = {SHORT} | ({SEARCH} if LONG_TERM in parts.without else set())
        self._tools = [tool.name for tool in parts.tools if tool.name not in off]

    def act(self, decision: DecisionContext) -> Action:
        """Look first by code; then ask for one action.

        Raises:
            Unreadable: the reply is not an action.
        """
        if not decision.searches and not decision.complaint:
            return first_look(decision.question, self._without)
        reply = self._asked(decision, self._tools)
        step, thought = reply.action, one_line(reply.thought)
        if isinstance(step, AnswerStep):
            return Action(kind="answer", reason=thought, note=step.model_dump_json())
        if step.tool not in self._tools:
            raise Unreadable(f"use one of {', '.join(self._tools)}, or answer")
        kept = step.model_dump(mode="json", exclude={"tool", "query"}, exclude_none=True)
        return use_tool(step.tool, thought, getattr(step, "query", ""), **kept)

    def rescue(self, decision: DecisionContext) -> Action:
        """Search the long-term memory with the question, once; then answer."""
        query = decision.question.text
        made = [(str(one.found.mode), one.found.query) for one in decision.searches]
        if SEARCH in self._tools and (SEARCH, query) not in made:
            return use_tool(SEARCH, "no reply could be carried out", query)
        return Action(kind="answer", reason="no reply could be carried out")

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer as planned, or ask for the answer now."""
        step = last_noted(decision.notes, AnswerStep)
        if step is None or decision.complaint:
            reply = self._asked(decision, ())
            if not isinstance(reply.action, AnswerStep):
                raise Unreadable("give the answer in the box: no other action is left")
            step = reply.action
        options, held = bool(decision.question.options), {one.ref for one in decision.held}
        box = one_line(step.boxed)
        refs = tuple(ref for ref in refs_in(step.evidence) if ref in held)
        if not refs:
            best = max(decision.held, key=lambda one: one.score, default=None)
            refs = () if best is None else (best.ref,)
        return Conclusion(
            text=box,
            option=box if options else None,
            refs=refs,
            not_in_memory=not refs or not (step.found or options),
        )

    def _asked(self, decision: DecisionContext, tools: Sequence[str]) -> ReactReply:
        rounds, last = self._settings.rounds, not tools
        offered = [*tools, "answer"]
        actions = "\n".join(prompt(f"react_{tool}") for tool in offered)
        rules = prompt("react_system", actions=actions, rounds=rounds)
        slots = {
            "question": question_block(decision.question),
            "history": "\n".join(_turn(one.found) for one in decision.searches) or "(nothing yet)",
        }
        turn = {"round": decision.round, "rounds": rounds}
        page = prompt("conclude", **slots) if last else prompt("react", **slots, **turn)
        return self._ask(
            decision,
            "conclude" if last else "react",
            rules,
            after_complaint(page, decision.complaint),
            offering(ReactReply, offered),
            shown=self._pictures(decision, SHARE),
            last=last,
        )


def _turn(made: EvidenceRetrieved) -> str:
    asked = quote_untrusted(made.query or json.dumps(made.arguments))
    head = f"{made.mode}: {asked}"
    if made.refused:
        return "\n".join(["<found>", head, f"refused: {quote_untrusted(made.refused)}", "</found>"])
    lines = [
        f"[{one.ref}] {one.span}: {quote_untrusted(one.full_text, SHOWN)}"
        for one in made.evidence[:MOST_SHOWN]
    ]
    return "\n".join(
        ["<found>", head, quote_untrusted(made.searched), join_lines(lines), "</found>"]
    )


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
