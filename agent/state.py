"""What a machine carries from step to step: small, and of plain JSON types only.

Evidence, cards and images are in the trajectory's events and in the store; the state has their
refs. So a checkpoint stays a few kilobytes, and reads back as what was written.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from domain.asking import Action, Ledger, Mode, Question, Subtask
from domain.base import Frozen
from domain.errors import InputError
from domain.ledger import get
from domain.view import MemoryView


class State(TypedDict, total=False):
    """The machine's state. ``seq`` is the number of the next event; ``next`` the step to take.

    ``clock`` is the seconds spent, ``looks`` how often it was looked at; ``round`` the round that
    is open, 0 before the first.
    """

    trajectory: str
    seq: int
    tokens: int
    clock: float
    looks: int
    question: dict[str, Any]
    view: dict[str, Any]
    ledger: dict[str, Any]
    progress: dict[str, Any]
    round: int
    current: str | None
    focus: dict[str, Any] | None
    action: dict[str, Any] | None
    tries: int
    complaint: str
    forced: str | None
    next: str
    outcome: dict[str, Any] | None


class Focus(Frozen):
    """The segment in focus."""

    id: int
    video: str
    label: str

    @property
    def ref(self) -> str:
        """How the segment is cited."""
        return f"s{self.id}"


class ProgressLedger(Frozen):
    """The progress ledger: how the search is going, in counts of rounds.

    ``empties``: in a row that found nothing; ``lows``: in a row with little new; ``stale``: in a
    row with no new evidence; ``on_focus``: in a row on the same segment; ``locked``: in a row on
    the same segment with nothing new. ``last`` is the round after which the machine ends, where the
    search is exhausted; ``told`` are reasons to repair the plan that were acted on.
    """

    empties: int = 0
    lows: int = 0
    stale: int = 0
    on_focus: int = 0
    locked: int = 0
    grace: bool = False
    last: int | None = None
    replans: int = 0
    told: tuple[str, ...] = ()
    reminded: bool = False
    hints: tuple[str, ...] = ()
    forced: tuple[Mode, ...] = ()


class LoopOutcome(Frozen):
    """How the loop ended: the answer, once there is one, and why the search stopped.

    ``ranked`` are the refs of what was found, best first, where the reasoner compared it.
    ``share``: how much of the support the option has, ``sure``: how sure the reasoner is, where it
    knows. ``declined``: memory cannot hold the answer. ``note``: what the user must know about how
    the answer came to be.
    """

    action: Action | None = None
    why: str
    ranked: tuple[str, ...] = ()
    share: float | None = None
    sure: float | None = None
    declined: bool = False
    note: str = ""


_STATE = TypeAdapter(State)


def check_state(values: dict[str, Any], trajectory: str) -> State:
    """The state that a checkpoint of a trajectory holds; it may have come with an import.

    Raises:
        InputError: it is no state of the machine's, or of another trajectory.
    """
    try:
        state = _STATE.validate_python(values, strict=True)
        for read in (ledger_of, progress_of, outcome_of, focus_of, action_of, question_of, view_of):
            read(state)
        same = state["trajectory"] == trajectory and state["seq"] >= 0
    except (ValidationError, KeyError, TypeError):
        same = False
    if not same:
        raise InputError(
            f"trajectory {trajectory} has a checkpoint that Homer did not write: it came with an "
            "import that was altered; ask the question again"
        )
    return state


def question_of(state: State) -> Question:
    """The question that is asked."""
    return Question.model_validate(state["question"])


def view_of(state: State) -> MemoryView:
    """The memory that the question may see."""
    return MemoryView.model_validate(state["view"])


def ledger_of(state: State) -> Ledger:
    """The task ledger."""
    return Ledger.model_validate(state.get("ledger") or {})


def progress_of(state: State) -> ProgressLedger:
    """The progress ledger."""
    return ProgressLedger.model_validate(state.get("progress") or {})


def outcome_of(state: State) -> LoopOutcome:
    """How the loop ended."""
    return LoopOutcome.model_validate(state.get("outcome") or {"why": ""})


def focus_of(state: State) -> Focus | None:
    """The segment in focus."""
    focus = state.get("focus")
    return Focus.model_validate(focus) if focus else None


def action_of(state: State) -> Action | None:
    """The action that the reasoner chose last; None where it was none."""
    action = state.get("action")
    return Action.model_validate(action) if action else None


def current_of(state: State) -> Subtask | None:
    """The subtask of this round."""
    return get(ledger_of(state), state.get("current"))


def is_first_look(state: State) -> bool:
    """Whether this round looks for an option for the first time.

    What it finds is compared with what was found for the others: so it starts from where they did,
    and that it is much the same says nothing about how the search goes.
    """
    task = current_of(state)
    return task is not None and bool(task.options) and task.attempts <= 1


def plain(model: Frozen) -> dict[str, Any]:
    """A model as the state holds it."""
    return model.model_dump(mode="json")
