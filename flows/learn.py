"""Learning as a Prefect flow, run after each batch of judged answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from prefect import flow

from flows.learning import learn_all
from flows.workspace import Workspace
from services.stale_runs import claim_run

_current: ContextVar[Workspace] = ContextVar("workspace")


@contextmanager
def at_hand(workspace: Workspace) -> Iterator[None]:
    """Give flows that run in this block the library and the models of ``workspace``."""
    token = _current.set(workspace)
    try:
        yield
    finally:
        _current.reset(token)


@flow(name="learn", flow_run_name="after batch {batch}", validate_parameters=False)
def learn(batch: int) -> int:  # noqa: ARG001 - the run is named after it
    """Learn from every answer judged since the last time; return how many there were."""
    claim_run()
    return sum(batch_result.answers for batch_result in learn_all(_current.get()))
