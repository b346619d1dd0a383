"""The context of a decision, put together from the state and the recorded events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

from agent.harness.inform import card_lines, pictures_of
from agent.reasoners.port import (
    CompletedRound,
    CompletedSearch,
    DecisionContext,
    Unreadable,
)
from agent.recorder import Recorder, with_notes
from agent.run_context import RunContext
from agent.state import (
    State,
    current_of,
    focus_of,
    ledger_of,
    outcome_of,
    progress_of,
    question_of,
    view_of,
)
from domain.asking import Ledger, Mode, Question, Subtask
from domain.people import tags_in
from domain.skills import Tone
from domain.trajectory import (
    Acted,
    Assessed,
    EvidenceRetrieved,
    Failed,
    ImageNote,
    ImagesSeen,
    Neighbour,
    Planned,
    Replanned,
    RoundOpened,
    SkillsRouted,
    SupportScored,
)

T = TypeVar("T")


def decision_context_of(state: State, context: RunContext, **more: Any) -> DecisionContext:
    """Build the decision context of a state; ``more``: fields that only this decision has."""
    progress, forced = progress_of(state), state.get("forced")
    routed = [skill for event in context.recorder.of(SkillsRouted) for skill in event.skills]
    # Cautionary skills are shown only once a search went badly: it found little that is new, or
    # stayed on the same segment.
    warned = any(event.low for event in context.recorder.of(Assessed)) or any(
        event.focus is not None
        and event.focus == following.focus
        and event.options == following.options
        for event, following in pairwise(context.recorder.of(EvidenceRetrieved))
    )
    return DecisionContext(
        question=question_of(state),
        view=view_of(state),
        ledger=ledger_of(state),
        planned=planned(context.recorder),
        current=current_of(state),
        round=state.get("round", 0),
        focus=focus_of(state),
        steps=steps(context.recorder),
        evidence=tuple(context.recorder.evidence().values()),
        searches=searches(context.recorder),
        support=tuple(context.recorder.of(SupportScored)),
        neighbours=last_neighbours(context),
        hints=progress.hints,
        complaint=state.get("complaint", ""),
        forced=Mode(forced) if forced else None,
        modes=context.settings.memory.modes,
        final=is_last(state, context),
        people=context.people,
        contents=context.contents,
        guesses=context.settings.answers == "best_guess",
        skills=tuple(skill for skill in routed if warned or skill.tone is Tone.POSITIVE),
        # The latest search's first, each once.
        pictures=tuple(
            dict.fromkeys(
                one
                for event in reversed(context.recorder.of(EvidenceRetrieved))
                for one in pictures_of(event)
            )
        ),
        notes=notes(context.recorder),
        answered=outcome_of(state).action,
        seconds=context.budget.seconds_left,
        tokens=context.budget.tokens_left,
        **more,
    )


def is_last(state: State, context: RunContext) -> bool:
    """Check whether the open round is the last."""
    last, number = progress_of(state).last, state.get("round", 0)
    return number >= context.settings.rounds or (last is not None and number >= last)


def planned(recorder: Recorder) -> Ledger:
    """Return the latest plan as it was made or repaired, without progress; empty before."""
    plans_made = [e for e in recorder.events if isinstance(e, Planned | Replanned)]
    plans = [e.subtasks for e in plans_made if isinstance(e, Planned) or not e.empty]
    bare = (Subtask(id=s.id, text=s.text, depends=s.depends) for s in (plans or [()])[-1])
    return Ledger(subtasks=tuple(bare))


def steps(recorder: Recorder) -> tuple[CompletedRound, ...]:
    """Return the searches so far, each with its card; each card is built once.

    What was seen on its images is on the card.
    """
    rounds: list[CompletedRound] = []
    notes: dict[int, tuple[ImageNote, ...]] = {}
    for look in recorder.of(ImagesSeen):
        notes[look.round] = (*notes.get(look.round, ()), *look.seen)
    seen: set[str] = set()
    subtask, focused, action = "", set[str](), None
    for at, event in enumerate(recorder.events):
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, Acted):
            action = event.action
        elif isinstance(event, EvidenceRetrieved) and action is not None:
            on_images = notes.get(event.round, ())
            built = (at, len(on_images))
            if built not in recorder.cards:
                found = event
                if on_images:
                    changed = with_notes({e.ref: e for e in event.evidence}, on_images)
                    evidence = tuple(changed.get(e.ref, e) for e in event.evidence)
                    found = event.model_copy(update={"evidence": evidence})
                recorder.cards[built] = card_lines(found, seen, repeats=event.focus in focused)
            lines = recorder.cards[built]
            rounds.append(
                CompletedRound(round=event.round, subtask=subtask, action=action, lines=lines)
            )
            seen |= {e.ref for e in event.evidence}
            focused |= {event.focus} if event.focus else set()
    return tuple(rounds)


def notes(recorder: Recorder) -> tuple[str, ...]:
    """Return what the actions so far carry over."""
    actions = (event.action for event in recorder.of(Acted))
    return tuple(action.note for action in actions if action is not None and action.note)


def searches(recorder: Recorder) -> tuple[CompletedSearch, ...]:
    """Return every search so far with the subtask it was made for."""
    completed: list[CompletedSearch] = []
    subtask = ""
    for event in recorder.events:
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, EvidenceRetrieved):
            completed.append(CompletedSearch(subtask=subtask, found=event))
    return tuple(completed)


def shown_tags(question: Question, context: RunContext) -> frozenset[str]:
    """Return the tags in the question, in the known names and in the evidence."""
    texts = (question.text, *(e.text for e in context.recorder.evidence().values()))
    return frozenset(tags_in(texts) | {tag for tag, _ in context.people})


def last_neighbours(context: RunContext) -> tuple[Neighbour, ...]:
    """Return the neighbours of the focus, by the last search that moved it."""
    moves = (Mode.EVENT, Mode.NEIGHBOR)
    retrieved = [
        e for e in context.recorder.of(EvidenceRetrieved) if e.mode in moves and not e.refused
    ]
    return tuple(n for n in retrieved[-1].neighbours if not n.of) if retrieved else ()


def attempt(
    context: RunContext,
    where: str,
    decision: DecisionContext,
    decide: Callable[[DecisionContext], T],
    retries: int,
) -> T | None:
    """Return a decision, retried with the complaint while unreadable; None if all fail."""
    for _ in range(retries + 1):
        try:
            return decide(decision)
        except Unreadable as error:
            failed = Failed(round=decision.round, where=where, message=str(error))
            context.recorder.add(failed)
            decision = decision.model_copy(update={"complaint": str(error)})
    return None
