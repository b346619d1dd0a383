"""The reasoner that is a language model: prompts out, checked structures back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from agent.harness.constrain import is_asked, letter, words
from agent.harness.inform import (
    action_line,
    begun,
    card,
    focus_line,
    has_news,
    hint_lines,
    ledger_lines,
    memory_line,
    people_lines,
    plan_lines,
    question_lines,
    skill_lines,
    subtask_line,
)
from agent.reasoners.port import Assessment, CompletedRound, Conclusion, DecisionContext
from agent.reasoners.prompts import prompt
from agent.reasoners.question_parts import as_query
from agent.reasoners.replies import PlanReply, ReplanReply
from agent.reasoners.reply_schemas import act_form, assess_form, conclude_form, short
from domain.asking import Action, Mode, Subtask
from domain.errors import BlobGone
from domain.ledger import Edits, SubtaskDraft
from domain.settings import AskSettings
from domain.skills import Tone
from models.messages import Message, assistant, system, user

Reply = TypeVar("Reply", bound=BaseModel)

RECENT = 1
"""The card of the last search is shown whole, of older ones the best lines: each was read whole
when it was found, and what was found in it is in the ledger and in the final evidence."""
OLD_LINES = 4
OLD_LINE = 200
"""Characters of one of these lines, its mark among them."""
END = "</memory>"
CONCLUDE_LINES = 60
UNSEEN = (
    "Some images of this search are missing and cannot be shown: judge by the others and the words."
)


class Caller(Protocol):
    """Makes the calls of one run: budgets, deadlines and the record are its business."""

    @property
    def sees(self) -> bool:
        """Whether the model can look at images."""

    @property
    def near(self) -> bool:
        """Whether the model runs in this process, where any form costs nothing."""

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        *,
        round: int,  # noqa: A002 - the word of the record
        temperature: float,
        images: Sequence[bytes] = (),
        last: bool = False,
    ) -> Reply:
        """A reply in ``schema``; ``last`` may use what is held back for the final answer.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds are spent.
            ModelError: the model cannot be reached.
        """


class LlmReasoner:
    """Decides by asking a language model. ``images`` loads a keyframe's JPEG by its SHA-256."""

    name = "llm"
    note = ""

    def __init__(
        self,
        caller: Caller,
        settings: AskSettings,
        images: Callable[[str], bytes] | None = None,
    ) -> None:
        self._caller, self._settings, self._images = caller, settings, images

    def plan(self, turn: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question, at a low temperature."""
        ask = prompt("plan", most=self._settings.subtasks, notes=_notes(turn))
        cool = self._settings.plan_temperature
        reply = self._caller.ask(
            "plan",
            _messages(turn, ask),
            short(PlanReply, self._caller.near),
            round=turn.round,
            temperature=cool,
        )
        return tuple(subtask.draft() for subtask in reply.subtasks)

    def act(self, turn: DecisionContext) -> Action:
        """Search or answer, after all that was found so far.

        After a complaint, a query that is still worded wrongly is mended where code can do it.
        """
        ask = prompt(
            "act",
            round=turn.round,
            rounds=self._settings.rounds,
            ledger=_ledger(turn, turn.current),
            current=subtask_line(turn.current),
            focus=_focus(turn),
            notes=_notes(turn),
        )
        warm = self._settings.act_temperature
        messages = _messages(turn, ask, turn.steps)
        action = self._caller.ask(
            "act", messages, act_form(turn, self._caller.near), round=turn.round, temperature=warm
        ).decision()
        return _helped(action, turn) if turn.complaint else action

    def assess(self, turn: DecisionContext) -> Assessment:
        """What the last search settles; it is shown the images where there are any."""
        found = card(turn.found, (), repeats=False) if turn.found else ""
        shown, unseen = self._pictures(turn)
        ask = prompt(
            "assess",
            ledger=_ledger(turn, turn.current),
            current=subtask_line(turn.current),
            card=found,
            notes="\n".join(filter(None, [_notes(turn), UNSEEN if unseen else ""])),
        )
        reply = self._caller.ask(
            "assess",
            _messages(turn, ask),
            assess_form(turn, self._caller.near),
            round=turn.round,
            temperature=0.0,
            images=shown,
        )
        return reply.assessment().model_copy(update={"unseen": unseen})

    def _pictures(self, turn: DecisionContext) -> tuple[list[bytes], tuple[str, ...]]:
        """The images of the last search, and the digests of those whose files are gone."""
        load = self._images if self._caller.sees else None
        wanted = turn.images[: self._settings.images] if load else ()
        shown, unseen = [], []
        for blob in wanted:
            try:
                shown.append(load(blob) if load else b"")
            except BlobGone:
                unseen.append(blob)
        return shown, tuple(unseen)

    def replan(self, turn: DecisionContext, reasons: tuple[str, ...]) -> Edits:
        """Repair the plan."""
        ask = prompt(
            "replan",
            ledger=_ledger(turn, turn.current),
            reasons="; ".join(reasons),
            adds=self._settings.replan_adds,
            notes=_notes(turn),
        )
        cool = self._settings.plan_temperature
        messages = _messages(turn, ask, turn.steps)
        return self._caller.ask(
            "replan",
            messages,
            short(ReplanReply, self._caller.near),
            round=turn.round,
            temperature=cool,
        ).edits()

    def conclude(self, turn: DecisionContext) -> Conclusion:
        """Answer from everything, at temperature 0."""
        ask = prompt(
            "conclude",
            ledger=_ledger(turn, None),
            evidence=_evidence(turn),
            form=_form(turn),
            notes=_notes(turn),
        )
        messages = _messages(turn, ask)
        form = conclude_form(turn, self._caller.near)
        reply = self._caller.ask(
            "conclude", messages, form, round=turn.round, temperature=0.0, last=True
        )
        return reply.conclusion()


def _helped(action: Action, turn: DecisionContext) -> Action:
    """A query that is still a question, a word or a copy after a complaint, put as a statement."""
    task = turn.current.text if turn.current else ""
    if action.kind != "search" or action.mode is Mode.NEIGHBOR or not words(action.query):
        return action
    wrong = is_asked(action.query) or len(words(action.query)) < 2
    if not (wrong or words(action.query) == words(task)):
        return action
    return action.model_copy(update={"query": as_query(action.query)})


def _messages(
    turn: DecisionContext, ask: str, steps: Sequence[CompletedRound] = ()
) -> list[Message]:
    """The stable part first, so that providers can cache it; then the searches; then the task."""
    question = prompt(
        "question",
        question=question_lines(turn.question),
        people=people_lines(turn.people),
        plan=plan_lines(turn.planned),
    )
    talk = [system(_system(turn)), user(question)]
    for i, step in enumerate(steps):
        old = i < len(steps) - RECENT
        talk.append(assistant(f"{step.subtask}: {action_line(step.action)}"))
        talk.append(user(_shortened(step.card) if old else step.card))
    return [*talk, user(ask)]


def _system(turn: DecisionContext) -> str:
    """The rules, and the advice that holds for the whole run."""
    advice = skill_lines(turn.skills, Tone.POSITIVE)
    return "\n\n".join([prompt("system"), *([prompt("skills", lines=advice)] if advice else [])])


def _shortened(text: str) -> str:
    """An older card: its head and the beginnings of its best lines."""
    head, *rest = text.split("\n")
    memories = [_begun(line) for line in rest if line.startswith("<memory")]
    return "\n".join([head, *memories[:OLD_LINES], "</card>"])


def _begun(line: str) -> str:
    """A memory's mark with the beginning of its words."""
    words = line.removesuffix(END)
    return line if len(words) <= OLD_LINE else begun(words, OLD_LINE) + END


def _ledger(turn: DecisionContext, current: Subtask | None) -> str:
    """In full when it changed since the plan was shown with the question, else in one line."""
    return ledger_lines(turn.ledger, current, full=has_news(turn.ledger, turn.planned))


def _focus(turn: DecisionContext) -> str:
    return focus_line(turn.focus.ref, turn.focus.label) if turn.focus else focus_line("", "")


def _notes(turn: DecisionContext) -> str:
    forced = (f"This round's mode is {turn.forced}.",) if turn.forced else _modes(turn)
    warnings = skill_lines(turn.skills, Tone.CAUTIONARY)
    return hint_lines((*turn.hints, *warnings.splitlines(), *forced), turn.complaint, turn.final)


def _modes(turn: DecisionContext) -> tuple[str, ...]:
    """What must be said where some modes are switched off."""
    whole = len(turn.modes) == len(Mode)
    return () if whole else (f"The only modes there are now: {', '.join(turn.modes)}.",)


def _evidence(turn: DecisionContext) -> str:
    """The best evidence, what supports the subtasks first, each once and in time."""
    support = {ref for s in turn.ledger.subtasks for ref in s.support}
    best = sorted(turn.held, key=lambda e: (e.ref not in support, -e.score, e.span.start_ms))
    shown = sorted(best[:CONCLUDE_LINES], key=lambda e: (e.video, e.span.start_ms, e.ref))
    return "\n".join(memory_line(e) for e in shown) or "Nothing was found."


def _form(turn: DecisionContext) -> str:
    if not turn.question.options:
        return prompt("conclude_open")
    return prompt("conclude_options", last=letter(len(turn.question.options) - 1))
