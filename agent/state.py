"""The machine's state: small, and of plain JSON types only.

Evidence, cards and images are in the trajectory's events and in the store; the state holds their
refs. So it takes a few kilobytes where a fork records it, and reads back exactly as written.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from domain.asking import Action, Ledger, Mode, Question, Subtask
from domain.base import Frozen
from domain.errors import InputError
from domain.ledger import find_subtask
from domain.memories import MemoryView


class State(TypedDict, total=False):
    """The machine's state. ``seq`` is the number of the next event; ``next`` the step to take.

    ``clock``: the seconds spent; ``looks``: how often it was read; ``round``: the open round, 0
    before the first.
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
        """Return how the segment is cited."""
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
    knows. ``note``: what the user must know about how
    the answer came to be.
    """

    action: Action | None = None
    why: str
    ranked: tuple[str, ...] = ()
    share: float | None = None
    sure: float | None = None
    note: str = ""


_STATE = TypeAdapter(State)


def check_state(values: dict[str, Any], trajectory: str) -> State:
    """Return the checked state from a trajectory's record, which may be imported.

    Raises:
        InputError: it is not a state of the machine, or of another trajectory.
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
            f"trajectory {trajectory} has a state on record that Homer did not write: it came with "
            "an import that was altered; ask the question again"
        )
    return state


def question_of(state: State) -> Question:
    return Question.model_validate(state["question"])


def view_of(state: State) -> MemoryView:
    return MemoryView.model_validate(state["view"])


def ledger_of(state: State) -> Ledger:
    return Ledger.model_validate(state.get("ledger") or {})


def progress_of(state: State) -> ProgressLedger:
    return ProgressLedger.model_validate(state.get("progress") or {})


def outcome_of(state: State) -> LoopOutcome:
    return LoopOutcome.model_validate(state.get("outcome") or {"why": ""})


def focus_of(state: State) -> Focus | None:
    focus = state.get("focus")
    return Focus.model_validate(focus) if focus else None


def action_of(state: State) -> Action | None:
    """Return the reasoner's last action; None if there was none."""
    action = state.get("action")
    return Action.model_validate(action) if action else None


def current_of(state: State) -> Subtask | None:
    return find_subtask(ledger_of(state), state.get("current"))


def is_first_look(state: State) -> bool:
    """Check whether this round searches for an option for the first time."""
    task = current_of(state)
    # Its results are compared with those of other options, so it starts from where they did, and
    # similar results say nothing about progress.
    return task is not None and bool(task.options) and task.attempts <= 1


def plain(model: Frozen) -> dict[str, Any]:
    """Return a model as the state holds it."""
    return model.model_dump(mode="json")
