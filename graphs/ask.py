"""Asking, resuming and forking, one question at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.asking import Question
from domain.trajectory import RunListener
from graphs.ask_result import AskResult
from graphs.runner import Runner

if TYPE_CHECKING:
    from domain.trajectory import ForkEdit
    from models.toolbox import Toolbox
    from store.database import Store


def ask(
    store: Store,
    toolbox: Toolbox,
    question: Question,
    on_event: RunListener | None = None,
    strategy: str | None = None,
) -> AskResult:
    """Answer ``question`` by a strategy; by default by that of the profile's settings.

    ``on_event`` gets every event as it happens, and the model's replies as they are written.

    Raises:
        NotFound: a video of the question is not in the library, or there is no such strategy.
        InputError: nothing of a video has been watched yet, as of that time.
        ModelError: the profile's language model cannot be reached.
        StoppedEarly: Ctrl-C was pressed; it has the best answer so far.
    """
    with Runner(store, toolbox) as runner:
        return runner.ask(question, on_event, strategy=strategy)


def resume(
    store: Store,
    toolbox: Toolbox,
    name: str,
    on_event: RunListener | None = None,
) -> AskResult:
    """Resume the question of the trajectory ``name``; see ``graphs.runner.Runner.resume``."""
    with Runner(store, toolbox) as runner:
        return runner.resume(name, on_event)


def fork(
    store: Store,
    toolbox: Toolbox,
    name: str,
    number: int,
    edit: ForkEdit,
    on_event: RunListener | None = None,
) -> AskResult:
    """Fork a round of a trajectory as a new one; see ``graphs.runner.Runner.fork``."""
    with Runner(store, toolbox) as runner:
        return runner.fork(name, number, edit, on_event)
