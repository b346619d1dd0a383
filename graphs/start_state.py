"""The state that a run starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent.state import State, check_state, plain
from domain.trajectory import Event, Forked, QuestionAsked, Setup
from graphs.context_factory import ROLES
from graphs.machines import machine_of
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from agent.run_context import RunContext
    from agent.strategy import Strategy
    from domain.asking import Question
    from domain.memories import MemoryView
    from domain.skills import StrategyChoice
    from models.profile import Profile
    from store.queries.trajectories import StoredTrajectory


def start_of(row: StoredTrajectory, events: Sequence[Event]) -> State:
    """Return the state that a trajectory began from: its own fork's, else the very first.

    Raises:
        InputError: the fork's is not a state of the machine: its record was changed.
    """
    for event in reversed(events):
        if isinstance(event, Forked):
            return check_state(event.start, row.id)
    return first_state(row.id, row.question, row.view, find_strategy(row.machine))


def first_state(trajectory: str, question: Question, view: MemoryView, strategy: Strategy) -> State:
    """Return the state in which a machine begins to answer a question."""
    return {
        "trajectory": trajectory,
        "seq": 1,
        "question": plain(question),
        "view": plain(view),
        "round": 0,
        "next": machine_of(strategy).start,
    }


# The first event of a run: the question, and what the run decides with.


def first_event(
    profile: Profile,
    question: Question,
    view: MemoryView,
    context: RunContext,
    choice: StrategyChoice | None,
) -> QuestionAsked:
    """Return the first event of a run; ``choice`` says how its strategy was chosen, if it was."""
    setup = Setup(
        settings=context.settings,
        people=context.people,
        contents=context.contents,
        languages=context.languages,
        calibration=profile.calibration,
        tools=context.recorder.strategy.narrowed_tools(profile),
        writers=context.writers,
        **models_on_record(profile),
    )
    return QuestionAsked(
        question=question,
        machine=context.recorder.strategy.name,
        profile=profile.name,
        reasoner=context.reasoner.name,
        view=view,
        setup=setup,
        version=context.recorder.strategy.version,
        choice=choice,
    )


def models_on_record(profile: Profile) -> dict[str, Any]:
    """Return the fields of a setup that name the models of a profile."""
    role = ROLES.get(profile.answering)
    spec = profile.chat_for(role) if role else None
    seeing = {"sees": bool(spec and spec.images), "image_model": profile.image_model}
    named = {"model": spec.model, "room": spec.room} if spec else {"model": "", "room": None}
    return named | seeing
