"""The reasoner that asks a language model: prompts out, checked structures back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from agent.harness.constrain import is_asked, letter, words
from agent.harness.inform import (
    LoadedPictures,
    LoadImage,
    Picture,
    action_line,
    affordable,
    by_evidence,
    card,
    content_lines,
    earlier_cards,
    edge_lines,
    focus_line,
    has_news,
    hint_lines,
    ledger_lines,
    load_pictures,
    memory_line,
    people_lines,
    pictures_of,
    plan_lines,
    question_lines,
    skill_lines,
    subtask_line,
)
from agent.reasoners.concluding import as_query
from agent.reasoners.port import LLM, Assessment, CompletedRound, Conclusion, DecisionContext
from agent.reasoners.replies import (
    PlanReply,
    ReplanReply,
    act_form,
    assess_form,
    conclude_form,
    with_short_texts,
)
from domain.asking import Action, Mode, Subtask, names_image
from domain.ledger import Edits, SubtaskDraft
from domain.settings import AskSettings
from domain.skills import Tone
from models.messages import Message, assistant, prompts_beside, system, user

prompt = prompts_beside(__file__)

Reply = TypeVar("Reply", bound=BaseModel)

ASSESS_SHARE, CONCLUDE_SHARE, ACT_SHARE = 2, 4, 20
"""The images of a call take at most one part in so many of the tokens that are left. Most where
they are looked at first, least where what was seen on them is known already."""
CONCLUDE_LINES = 120
"""Pieces of evidence that an answer is drawn from, at most: a question finds 20 to 60."""
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
        labels: Sequence[str] = (),
        last: bool = False,
    ) -> Reply:
        """Ask for a reply in ``schema``; ``last`` may use what is reserved for the final answer.

        ``labels``: a text before each of the images, or none.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds are spent.
            ModelError: the model cannot be reached.
        """


class LlmReasoner:
    """A reasoner that asks a language model.

    Args:
        caller: makes the calls.
        images: loads a keyframe's JPEG by its SHA-256.
    """

    name = LLM
    note = ""

    def __init__(
        self, caller: Caller, settings: AskSettings, images: LoadImage | None = None
    ) -> None:
        self._caller, self._settings, self._images = caller, settings, images

    def plan(self, decision: DecisionContext) -> tuple[SubtaskDraft, ...]:
        """Split the question, at a low temperature."""
        task_prompt = prompt("plan", most=self._settings.subtasks, notes=_notes(decision))
        temperature = self._settings.plan_temperature
        reply = self._caller.ask(
            "plan",
            self._messages(decision, task_prompt),
            with_short_texts(PlanReply, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
        )
        return tuple(subtask.draft() for subtask in reply.subtasks)

    def act(self, decision: DecisionContext) -> Action:
        """Search or answer, after all that was found so far.

        After a complaint, a query that is still badly worded is repaired where code can do it.
        """
        latest = pictures_of(decision.searches[-1].found) if decision.searches else ()
        loaded = self._load(latest, decision, ACT_SHARE)
        hint = "" if self._caller.in_process else prompt("act_time")
        ref, label = (decision.focus.ref, decision.focus.label) if decision.focus else ("", "")
        task_prompt = prompt(
            "act",
            round=decision.round,
            rounds=self._settings.rounds,
            ledger=_ledger(decision, decision.current),
            current=subtask_line(decision.current),
            focus=focus_line(ref, label),
            notes="\n".join(filter(None, [_with_images(_notes(decision), loaded), hint])),
        )
        temperature = self._settings.act_temperature
        action = self._caller.ask(
            "act",
            self._messages(decision, task_prompt, decision.steps),
            act_form(decision, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
            images=loaded.images,
            labels=loaded.labels,
        ).decision()
        if not decision.complaint:
            return action
        # Reword a query that is still a question, a single word or a copy.
        task = decision.current.text if decision.current else ""
        if action.kind != "search" or action.mode is Mode.NEIGHBOR or not words(action.query):
            return action
        malformed = is_asked(action.query) or len(words(action.query)) < 2
        if not (malformed or words(action.query) == words(task)):
            return action
        return action.model_copy(update={"query": as_query(action.query)})

    def assess(self, decision: DecisionContext) -> Assessment:
        """Decide what the last search settles, with its images if the model accepts them."""
        card_text = card(decision.found, (), repeats=False) if decision.found else ""
        found = pictures_of(decision.found) if decision.found else ()
        loaded = self._load(found, decision, ASSESS_SHARE)
        far = loaded.refs and decision.found is not None and decision.found.nothing_close
        notes = [
            _notes(decision),
            UNSEEN if loaded.missing else "",
            prompt("assess_images") if loaded.refs else "",
            prompt("assess_images_far") if far else "",
        ]
        task_prompt = prompt(
            "assess",
            ledger=_ledger(decision, decision.current),
            current=subtask_line(decision.current),
            card=card_text,
            notes="\n".join(filter(None, notes)),
        )
        reply = self._caller.ask(
            "assess",
            self._messages(decision, task_prompt),
            assess_form(decision, self._caller.in_process, loaded.refs),
            round=decision.round,
            temperature=0.0,
            images=loaded.images,
            labels=loaded.labels,
        )
        return reply.assessment().model_copy(
            update={"unseen": loaded.missing, "shown": loaded.refs}
        )

    def _load(
        self, pictures: Sequence[Picture], decision: DecisionContext, share: int
    ) -> LoadedPictures:
        """Load pictures for a model that sees, as many as one call and the budget have room for."""
        if self._images is None or not self._caller.sees:
            return LoadedPictures()
        most = min(self._settings.images, affordable(decision.tokens, share))
        return load_pictures(pictures[:most], self._images)

    def replan(self, decision: DecisionContext, reasons: tuple[str, ...]) -> Edits:
        task_prompt = prompt(
            "replan",
            ledger=_ledger(decision, decision.current),
            reasons="; ".join(reasons),
            adds=self._settings.replan_adds,
            notes=_notes(decision),
        )
        temperature = self._settings.plan_temperature
        return self._caller.ask(
            "replan",
            self._messages(decision, task_prompt, decision.steps),
            with_short_texts(ReplanReply, self._caller.in_process),
            round=decision.round,
            temperature=temperature,
        ).edits()

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from everything, at temperature 0."""
        # The evidence that images are: supporting first, then those with image notes.
        support = {ref for s in decision.ledger.subtasks for ref in s.support}
        most_telling = sorted(
            (e for e in decision.evidence if names_image(e.ref)),
            key=lambda e: (e.ref not in support, not e.seen, -e.score, e.span.start_ms),
        )
        held = by_evidence(decision.pictures, most_telling)
        loaded = self._load(held, decision, CONCLUDE_SHARE)
        # All that was found, each once, in order of time, and how events stand to each other. Of
        # very much, what supports answers and what scored best is kept. Summaries are whole.
        best = sorted(
            decision.evidence, key=lambda e: (e.ref not in support, -e.score, e.span.start_ms)
        )
        in_time = sorted(best[:CONCLUDE_LINES], key=lambda e: (e.video, e.span.start_ms, e.ref))
        edges = edge_lines([search.found for search in decision.searches])
        lines = [*(memory_line(e, whole=True) for e in in_time), *edges]
        options = decision.question.options
        task_prompt = prompt(
            "conclude",
            ledger=_ledger(decision, None),
            evidence="\n".join(lines) or "Nothing was found.",
            form=prompt("conclude_options", last=letter(len(options) - 1))
            if options
            else prompt("conclude_guess" if decision.guesses else "conclude_open"),
            notes=_with_images(_notes(decision), loaded),
        )
        reply = self._caller.ask(
            "conclude",
            self._messages(decision, task_prompt),
            conclude_form(decision, self._caller.in_process),
            round=decision.round,
            temperature=0.0,
            images=loaded.images,
            labels=loaded.labels,
            last=True,
        )
        return reply.conclusion()

    def _messages(
        self, decision: DecisionContext, task_prompt: str, steps: Sequence[CompletedRound] = ()
    ) -> list[Message]:
        """Build the messages: the stable part first for caching, then searches, then the task."""
        question = prompt(
            "question",
            question=question_lines(decision.question),
            people=people_lines(decision.people),
            plan=plan_lines(decision.planned),
            contents=content_lines(decision.contents),
        )
        # The rules, and the advice that holds for the whole run.
        advice = skill_lines(decision.skills, Tone.POSITIVE)
        rules = [prompt("system"), *([prompt("skills", lines=advice)] if advice else [])]
        first, last = [system("\n\n".join(rules)), user(question)], user(task_prompt)
        if not steps:
            return [*first, last]
        cards = earlier_cards([step.lines for step in steps])
        turns = [
            turn
            for step, shown in zip(steps, cards, strict=True)
            for turn in (assistant(f"{step.subtask}: {action_line(step.action)}"), user(shown))
        ]
        return [*first, *turns, last]


def _ledger(decision: DecisionContext, current: Subtask | None) -> str:
    """Return the ledger in full if it changed since the question was shown, else in one line."""
    return ledger_lines(decision.ledger, current, full=has_news(decision.ledger, decision.planned))


def _notes(decision: DecisionContext) -> str:
    forced: tuple[str, ...] = ()
    if decision.forced:
        forced = (f"This round's mode is {decision.forced}.",)
    elif len(decision.modes) != len(Mode):  # Some are switched off.
        forced = (f"The only modes there are now: {', '.join(decision.modes)}.",)
    warnings = skill_lines(decision.skills, Tone.CAUTIONARY)
    return hint_lines(
        (*decision.hints, *warnings.splitlines(), *forced), decision.complaint, decision.final
    )


def _with_images(notes: str, loaded: LoadedPictures) -> str:
    """Return notes with what is to be known about images, if there are any."""
    return "\n".join(filter(None, [notes, prompt("images") if loaded.images else ""]))
