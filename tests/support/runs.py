"""Asking, resuming and forking, one question at a time, each with a runner of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from domain.asking import Question
from domain.trajectory import RunListener
from graphs.ask_result import AskResult
from graphs.runner import Runner

if TYPE_CHECKING:
    from domain.trajectory import Event, ForkEdit
    from models.toolbox import Toolbox
    from store.database import Store


def ask(
    store: Store,
    toolbox: Toolbox,
    question: Question,
    on_event: RunListener | None = None,
    strategy: str | None = None,
) -> AskResult:
    with Runner(store, toolbox) as runner:
        return runner.ask(question, on_event, strategy=strategy)


def resume(
    store: Store, toolbox: Toolbox, name: str, on_event: RunListener | None = None
) -> AskResult:
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
    with Runner(store, toolbox) as runner:
        return runner.fork(name, number, edit, on_event)


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
