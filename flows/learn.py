"""Learning as a Prefect flow, run after each batch of judged answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from prefect import flow

from flows.learning import learn_all
from flows.workspace import Workspace
from services.stale_runs import claim_run

_at_hand: ContextVar[Workspace] = ContextVar("desk at hand")


@contextmanager
def at_hand(desk: Workspace) -> Iterator[None]:
    """Flows that run in here learn in this library, with these models."""
    token = _at_hand.set(desk)
    try:
        yield
    finally:
        _at_hand.reset(token)


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(batch: int) -> int:  # noqa: ARG001 - the run is named after it
    """Learn from every answer that was judged since the last time; returns how many those are."""
    claim_run()
    return sum(one.answers for one in learn_all(_at_hand.get()))
