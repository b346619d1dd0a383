"""The state that a run starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from agent.state import State, plain
from domain.trajectory import Event, Forked
from graphs.machines import machine_of
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from agent.strategy import Strategy
    from domain.asking import Question
    from domain.memories import MemoryView
    from store.queries.trajectories import StoredTrajectory


def start_of(row: StoredTrajectory, events: Sequence[Event]) -> State:
    """Return the state that a trajectory began from: its own fork's, else the very first."""
    for event in reversed(events):
        if isinstance(event, Forked):
            return cast(State, event.start)
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
