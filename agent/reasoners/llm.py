"""The reasoner that asks a language model: prompts out, checked structures back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from agent.harness.constrain import is_asked, letter, words
from agent.harness.inform import (
    action_line,
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
    truncated,
)
from agent.reasoners.port import Assessment, CompletedRound, Conclusion, DecisionContext
from agent.reasoners.prompts import prompt
from agent.reasoners.question_parts import as_query
from agent.reasoners.replies import PlanReply, ReplanReply
from agent.reasoners.reply_schemas import act_form, assess_form, conclude_form, with_short_texts
from domain.asking import Action, Mode, Subtask
from domain.errors import BlobGone
from domain.ledger import Edits, SubtaskDraft
from domain.settings import AskSettings
from domain.skills import Tone
from models.messages import Message, assistant, system, user

Reply = TypeVar("Reply", bound=BaseModel)

RECENT = 1
"""How many of the latest cards are shown whole; of older ones the best lines: each was read whole
before, and what was found in it is in the ledger and in the final evidence."""
OLD_LINES = 4
OLD_LINE = 200
"""Characters of one of these lines, its mark among them."""
END = "</memory>"
CONCLUDE_LINES = 60
UNSEEN = (
    "Some images of this search are missing and cannot be shown: judge by the others and the words."
)


class Caller(Protocol):
    """Makes the calls of one run, within its budget and deadline, and records them."""

    @property
    def sees(self) -> bool:
        """Check whether the model accepts images."""

    @property
    def in_process(self) -> bool:
        """Check whether the model runs in this process, where any schema costs nothing."""

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
        """Ask for a reply in ``schema``; ``last`` may use what is reserved for the final answer.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds are spent.
            ModelError: the model cannot be reached.
        """


class LlmReasoner:
    """A reasoner that asks a language model. ``images`` loads a keyframe's JPEG by its SHA-256."""

    name = "llm"
    note = ""

    def __init__(
        self,
        caller: Caller,
        settings: AskSettings,
        images: Callable[[str], bytes] | None = None,
    ) -> None:
        self._caller, self._settings, self._images = caller, settings, images

    def plan(self, decision: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question, at a low temperature."""
        task_prompt = prompt("plan", most=self._settings.subtasks, notes=_notes(decision))
        temperature = self._settings.plan_temperature
        reply = self._caller.ask(
            "plan",
            _messages(decision, task_prompt),
            with_short_texts(PlanReply, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
        )
        return tuple(subtask.draft() for subtask in reply.subtasks)

    def act(self, decision: DecisionContext) -> Action:
        """Search or answer, after all that was found so far.

        After a complaint, a query that is still badly worded is repaired where code can do it.
        """
        task_prompt = prompt(
            "act",
            round=decision.round,
            rounds=self._settings.rounds,
            ledger=_ledger(decision, decision.current),
            current=subtask_line(decision.current),
            focus=_focus(decision),
            notes=_notes(decision),
        )
        temperature = self._settings.act_temperature
        messages = _messages(decision, task_prompt, decision.steps)
        action = self._caller.ask(
            "act",
            messages,
            act_form(decision, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
        ).decision()
        return _repaired(action, decision) if decision.complaint else action

    def assess(self, decision: DecisionContext) -> Assessment:
        """Decide what the last search settles, with its images if the model accepts them."""
        card_text = card(decision.found, (), repeats=False) if decision.found else ""
        images, unseen = self._load_images(decision)
        task_prompt = prompt(
            "assess",
            ledger=_ledger(decision, decision.current),
            current=subtask_line(decision.current),
            card=card_text,
            notes="\n".join(filter(None, [_notes(decision), UNSEEN if unseen else ""])),
        )
        reply = self._caller.ask(
            "assess",
            _messages(decision, task_prompt),
            assess_form(decision, self._caller.in_process),
            round=decision.round,
            temperature=0.0,
            images=images,
        )
        return reply.assessment().model_copy(update={"unseen": unseen})

    def _load_images(self, decision: DecisionContext) -> tuple[list[bytes], tuple[str, ...]]:
        """Load the images of the last search, and return the digests of missing files."""
        load = self._images if self._caller.sees else None
        digests = decision.images[: self._settings.images] if load else ()
        loaded, missing = [], []
        for digest in digests:
            try:
                loaded.append(load(digest) if load else b"")
            except BlobGone:
                missing.append(digest)
        return loaded, tuple(missing)

    def replan(self, decision: DecisionContext, reasons: tuple[str, ...]) -> Edits:
        """Repair the plan."""
        task_prompt = prompt(
            "replan",
            ledger=_ledger(decision, decision.current),
            reasons="; ".join(reasons),
            adds=self._settings.replan_adds,
            notes=_notes(decision),
        )
        temperature = self._settings.plan_temperature
        messages = _messages(decision, task_prompt, decision.steps)
        return self._caller.ask(
            "replan",
            messages,
            with_short_texts(ReplanReply, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
        ).edits()

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from everything, at temperature 0."""
        task_prompt = prompt(
            "conclude",
            ledger=_ledger(decision, None),
            evidence=_evidence(decision),
            form=_form(decision),
            notes=_notes(decision),
        )
        messages = _messages(decision, task_prompt)
        form = conclude_form(decision, self._caller.in_process)
        reply = self._caller.ask(
            "conclude", messages, form, round=decision.round, temperature=0.0, last=True
        )
        return reply.conclusion()


def _repaired(action: Action, decision: DecisionContext) -> Action:
    """Reword a query that is still a question, a single word or a copy after a complaint."""
    task = decision.current.text if decision.current else ""
    if action.kind != "search" or action.mode is Mode.NEIGHBOR or not words(action.query):
        return action
    malformed = is_asked(action.query) or len(words(action.query)) < 2
    if not (malformed or words(action.query) == words(task)):
        return action
    return action.model_copy(update={"query": as_query(action.query)})


def _messages(
    decision: DecisionContext, task_prompt: str, steps: Sequence[CompletedRound] = ()
) -> list[Message]:
    """Build the messages: the stable part first for caching, then searches, then the task."""
    question = prompt(
        "question",
        question=question_lines(decision.question),
        people=people_lines(decision.people),
        plan=plan_lines(decision.planned),
    )
    messages = [system(_system(decision)), user(question)]
    for i, step in enumerate(steps):
        is_old = i < len(steps) - RECENT
        messages.append(assistant(f"{step.subtask}: {action_line(step.action)}"))
        messages.append(user(_shortened(step.card) if is_old else step.card))
    return [*messages, user(task_prompt)]


def _system(decision: DecisionContext) -> str:
    """Return the rules, and the advice that holds for the whole run."""
    advice = skill_lines(decision.skills, Tone.POSITIVE)
    return "\n\n".join([prompt("system"), *([prompt("skills", lines=advice)] if advice else [])])


def _shortened(text: str) -> str:
    """Return an older card: its head and the beginnings of its best lines."""
    head, *rest = text.split("\n")
    memories = [_truncated(line) for line in rest if line.startswith("<memory")]
    return "\n".join([head, *memories[:OLD_LINES], "</card>"])


def _truncated(line: str) -> str:
    """Truncate a memory line but keep its closing mark."""
    body = line.removesuffix(END)
    return line if len(body) <= OLD_LINE else truncated(body, OLD_LINE) + END


def _ledger(decision: DecisionContext, current: Subtask | None) -> str:
    """Return the ledger in full if it changed since the question was shown, else in one line."""
    return ledger_lines(decision.ledger, current, full=has_news(decision.ledger, decision.planned))


def _focus(decision: DecisionContext) -> str:
    return (
        focus_line(decision.focus.ref, decision.focus.label)
        if decision.focus
        else focus_line("", "")
    )


def _notes(decision: DecisionContext) -> str:
    forced = (f"This round's mode is {decision.forced}.",) if decision.forced else _modes(decision)
    warnings = skill_lines(decision.skills, Tone.CAUTIONARY)
    return hint_lines(
        (*decision.hints, *warnings.splitlines(), *forced), decision.complaint, decision.final
    )


def _modes(decision: DecisionContext) -> tuple[str, ...]:
    """Return a note on the available modes where some are switched off."""
    all_modes = len(decision.modes) == len(Mode)
    return () if all_modes else (f"The only modes there are now: {', '.join(decision.modes)}.",)


def _evidence(decision: DecisionContext) -> str:
    """Return the best evidence, supporting evidence first, each once, in order of time."""
    support = {ref for s in decision.ledger.subtasks for ref in s.support}
    best = sorted(decision.held, key=lambda e: (e.ref not in support, -e.score, e.span.start_ms))
    in_time = sorted(best[:CONCLUDE_LINES], key=lambda e: (e.video, e.span.start_ms, e.ref))
    return "\n".join(memory_line(e) for e in in_time) or "Nothing was found."


def _form(decision: DecisionContext) -> str:
    if not decision.question.options:
        return prompt("conclude_open")
    return prompt("conclude_options", last=letter(len(decision.question.options) - 1))
