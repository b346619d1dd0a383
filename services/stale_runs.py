"""Flow runs whose process is gone: they would stay "Running" on Prefect's pages for ever.

A run says which process it is in; whoever starts something looks whether those of this machine
still live. Runs of other machines are left alone. Import this module only after Prefect's
environment is set (``services.prefect.environment``).
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
from prefect.context import FlowRunContext
from prefect.states import Crashed

from services.library_tag import pool_of, tag_of
from store.host_identity import HostIdentity

UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
BEGINS_WITHIN = timedelta(minutes=10)
"""A run that is about to begin for longer than that was forgotten."""

SLACK_S = 60
"""Clocks of servers differ; and no process id is given again so soon."""

WHERE = "homer.where"
"""The label that says where the process id of a run means something."""

GONE = "its process is gone"
PAGE = 200


def claim_run() -> None:
    """Says of the flow run that we are in, if we are in one, which process carries it out."""
    here = FlowRunContext.get()
    run = here.flow_run if here else None
    if run is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(run.id, {WHERE: str(HostIdentity.here())})
            client.update_flow_run(run.id, infrastructure_pid=f"{socket.gethostname()}:{getpid()}")


def mark_killed(library: str, tag: str) -> None:
    """Marks a library's running runs of a tag; who holds the lock of what they do knows them dead.

    Another library at the same server may well watch the same video.
    """
    with get_client(sync_client=True) as client:
        _mark(client, _unfinished(client, [StateType.RUNNING], [tag, tag_of(library)]))


def mark_gone(library: str, now: datetime | None = None) -> list[UUID]:
    """Marks the runs of this machine whose process is gone, and returns them.

    Args:
        library: whose schedules' runs are also marked where they were forgotten before they began.
        now: None is this moment.
    """
    with get_client(sync_client=True) as client:
        found = _unfinished(client, UNFINISHED)
        dead = [run for run in found if is_gone(run, pool_of(library), now or datetime.now(UTC))]
        _mark(client, dead)
    return [run.id for run in dead]


def is_gone(run: FlowRun, pool: str, now: datetime) -> bool:
    """Whether a run's process is known to be gone, or one waiting in ``pool`` was forgotten."""
    if run.state_type == StateType.PENDING and run.start_time is None:
        since = run.state.timestamp if run.state else run.created
        if run.work_pool_name != pool:
            return False
        return since is not None and now - since > BEGINS_WITHIN
    there, here = HostIdentity.of(str(run.labels.get(WHERE))), HostIdentity.here()
    pid = (run.infrastructure_pid or "").rpartition(":")[2]
    if there != here or not pid.isdigit():
        return there is not None and there.ended_before(here)
    return not _lives(int(pid), run.start_time or now)


def _lives(pid: int, began: datetime) -> bool:
    """Whether the process was there when the run began; one that is younger took over its id."""
    with suppress(psutil.Error, OverflowError):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.create_time() <= began.timestamp() + SLACK_S
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
        now = client.read_flow_run(run.id)
        if now.state and run.state and now.state.id != run.state.id:
            continue  # It ended, or went on, while we looked.
        client.set_flow_run_state(run.id, Crashed(message=GONE), force=True)
