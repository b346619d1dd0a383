"""What a reasoner is shown at a decision, put together from the state and the record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

from agent.harness.constrain import MadeSearch
from agent.harness.inform import card
from agent.reasoners.port import CompletedRound, CompletedSearch, DecisionContext, Unreadable
from agent.recorder import Recorder
from agent.run_context import RunContext
from agent.state import State, current_of, focus_of, ledger_of, progress_of, question_of, view_of
from domain.asking import Ledger, Mode, Question, Subtask
from domain.people import TAG
from domain.skills import RoutedSkill, Tone
from domain.trajectory import (
    Acted,
    Assessed,
    EvidenceRetrieved,
    Failed,
    Neighbour,
    Planned,
    Replanned,
    RoundOpened,
    SkillsRouted,
    SupportScored,
)

T = TypeVar("T")


def turn_of(state: State, desk: RunContext, **more: Any) -> DecisionContext:
    """The turn as it is now; ``more`` are fields that only this decision has."""
    progress, forced = progress_of(state), state.get("forced")
    return DecisionContext(
        question=question_of(state),
        view=view_of(state),
        ledger=ledger_of(state),
        planned=planned(desk.recorder),
        current=current_of(state),
        round=state.get("round", 0),
        focus=focus_of(state),
        steps=steps(desk.recorder),
        evidence=tuple(desk.recorder.evidence().values()),
        searches=searches(desk.recorder),
        support=tuple(desk.recorder.of(SupportScored)),
        neighbours=last_neighbours(desk),
        hints=progress.hints,
        complaint=state.get("complaint", ""),
        forced=Mode(forced) if forced else None,
        modes=desk.settings.memory.modes,
        final=is_last(state, desk),
        people=desk.people,
        skills=skills_now(desk.recorder),
        seconds=desk.meter.seconds_left,
        tokens=desk.meter.tokens_left,
        **more,
    )


def skills_now(recorder: Recorder) -> tuple[RoutedSkill, ...]:
    """The question's skills; cautionary ones from the first round on that gave little."""
    given = [skill for event in recorder.of(SkillsRouted) for skill in event.skills]
    warned = bool(given) and goes_badly(recorder)
    return tuple(one for one in given if warned or one.tone is Tone.POSITIVE)


def goes_badly(recorder: Recorder) -> bool:
    """Whether a search gave little that is new, or stayed on the segment that it was on."""
    pairs = pairwise(recorder.of(EvidenceRetrieved))
    stayed = any(
        one.focus is not None and one.focus == other.focus and one.options == other.options
        for one, other in pairs
    )
    return stayed or any(event.low for event in recorder.of(Assessed))


def is_last(state: State, desk: RunContext) -> bool:
    """Whether no round follows the one that is open."""
    last, number = progress_of(state).last, state.get("round", 0)
    return number >= desk.settings.rounds or (last is not None and number >= last)


def planned(recorder: Recorder) -> Ledger:
    """The plan as it was made or repaired last, without what came of it; empty before."""
    made = [e for e in recorder.events if isinstance(e, Planned | Replanned)]
    plans = [e.subtasks for e in made if isinstance(e, Planned) or not e.empty]
    bare = (Subtask(id=s.id, text=s.text, depends=s.depends) for s in (plans or [()])[-1])
    return Ledger(subtasks=tuple(bare))


def steps(recorder: Recorder) -> tuple[CompletedRound, ...]:
    """The searches made so far, each with the card it gave; each card is made once."""
    made: list[CompletedRound] = []
    seen: set[str] = set()
    subtask, focused, action = "", set[str](), None
    for at, event in enumerate(recorder.events):
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, Acted):
            action = event.action
        elif isinstance(event, EvidenceRetrieved) and action is not None:
            if at not in recorder.cards:
                recorder.cards[at] = card(event, seen, repeats=event.focus in focused)
            shown = recorder.cards[at]
            made.append(
                CompletedRound(round=event.round, subtask=subtask, action=action, card=shown)
            )
            seen |= {e.ref for e in event.evidence}
            focused |= {event.focus} if event.focus else set()
    return tuple(made)


def searches(recorder: Recorder) -> tuple[CompletedSearch, ...]:
    """Every search that was made, with the subtask that it was made for."""
    made: list[CompletedSearch] = []
    subtask = ""
    for event in recorder.events:
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, EvidenceRetrieved):
            made.append(CompletedSearch(subtask=subtask, found=event))
    return tuple(made)


def searched(desk: RunContext) -> tuple[MadeSearch, ...]:
    """Mode and query of every search that was made, and which options it was for."""
    found = desk.recorder.of(EvidenceRetrieved)
    return tuple(MadeSearch(mode=e.mode, query=e.query, options=e.options) for e in found)


def shown_tags(question: Question, desk: RunContext) -> frozenset[str]:
    """The tags of the people that the question, the names or what was found speak of."""
    texts = (question.text, *(e.text for e in desk.recorder.evidence().values()))
    told = (found[0] for text in texts for found in TAG.finditer(text))
    return frozenset((*told, *(tag for tag, _ in desk.people)))


def last_neighbours(desk: RunContext) -> tuple[Neighbour, ...]:
    """What the last search that moved the focus gave to move on to."""
    moves = (Mode.EVENT, Mode.NEIGHBOR)
    found = [e for e in desk.recorder.of(EvidenceRetrieved) if e.mode in moves and not e.refused]
    return found[-1].neighbours if found else ()


def attempt(
    desk: RunContext,
    where: str,
    turn: DecisionContext,
    decide: Callable[[DecisionContext], T],
    retries: int,
) -> T | None:
    """A decision, asked for again with the complaint while it is unreadable; None at the end."""
    for _ in range(retries + 1):
        try:
            return decide(turn)
        except Unreadable as error:
            failed = Failed(round=turn.round, where=where, message=str(error))
            desk.recorder.add(failed)
            turn = turn.model_copy(update={"complaint": str(error)})
    return None
