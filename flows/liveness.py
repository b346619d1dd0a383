"""Flow runs whose process is gone: they would stay "Running" on Prefect's pages for ever.

A run says which process it is in; whoever starts something looks whether those of this machine
still live. Runs of other machines are left alone. Import this module only after Prefect's
environment is set (``flows.server.environment``).
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from os import getpid
from uuid import UUID

import psutil
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import get_run_context
from prefect.states import Crashed

UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
BEGINS_WITHIN = timedelta(minutes=10)
"""A run that is about to begin for longer than that was forgotten."""

GONE = "its process is gone"
PAGE = 200


def claim_run() -> None:
    """Says of the flow run that we are in which process carries it out."""
    run = getattr(get_run_context(), "flow_run", None)
    if run is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run(run.id, infrastructure_pid=f"{socket.gethostname()}:{getpid()}")


def mark_killed(tag: str) -> None:
    """Marks the running runs of a tag; whoever holds the lock of what they do knows them dead."""
    with get_client(sync_client=True) as client:
        _mark(client, _unfinished(client, [StateType.RUNNING], [tag]))


def mark_gone(now: datetime | None = None) -> list[UUID]:
    """Marks the runs of this machine whose process is gone, and returns them."""
    with get_client(sync_client=True) as client:
        found = _unfinished(client, UNFINISHED)
        dead = [run for run in found if is_gone(run, now or datetime.now(UTC))]
        _mark(client, dead)
    return [run.id for run in dead]


def is_gone(run: FlowRun, now: datetime) -> bool:
    """Whether the process of a run is known not to be there any more."""
    host, _, pid = (run.infrastructure_pid or "").rpartition(":")
    if run.state_type == StateType.PENDING and run.start_time is None:
        since = run.state.timestamp if run.state else run.created
        return since is not None and now - since > BEGINS_WITHIN
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return not _lives(int(pid), run.start_time or now)


def _lives(pid: int, began: datetime) -> bool:
    """Whether the process was there when the run began; one that is younger took over its id."""
    with suppress(psutil.Error, OverflowError):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.create_time() <= began.timestamp() + 1
    return False


def _unfinished(
    client: SyncPrefectClient, states: Sequence[StateType], tags: Sequence[str] = ()
) -> list[FlowRun]:
    kinds = FlowRunFilterStateType(any_=list(states))
    tagged = FlowRunFilterTags(all_=list(tags)) if tags else None
    asked = FlowRunFilter(state=FlowRunFilterState(type=kinds), tags=tagged)
    return client.read_flow_runs(flow_run_filter=asked, limit=PAGE)


def _mark(client: SyncPrefectClient, dead: Sequence[FlowRun]) -> None:
    for run in dead:
        client.set_flow_run_state(run.id, Crashed(message=GONE), force=True)
