"""Flow runs whose process is gone, which Prefect's pages would show as "Running" for ever.

A run is labelled with its process; at the start of a flow the processes of this machine's runs are
checked. Runs of other machines are not changed. Import this module only after Prefect's environment
is set (``services.prefect.prefect_environment``).
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

from services.prefect import library_tag_name, work_pool_name
from store.postmaster import HostIdentity

UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
BEGINS_WITHIN = timedelta(minutes=10)
"""A run that has been pending for longer than this was abandoned."""

SLACK_S = 60
"""Tolerance for the clocks of servers; process ids are not reused that soon."""

WHERE = "homer.where"
"""The label with the host on which the process id of a run is valid."""

GONE = "its process is gone"
PAGE = 200


def label_run() -> None:
    """Label the current flow run, if there is one, with its process."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is not None:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(run.id, {WHERE: str(HostIdentity.here())})
            client.update_flow_run(run.id, infrastructure_pid=f"{socket.gethostname()}:{getpid()}")


def mark_killed_runs(library: str, tag: str) -> None:
    """Mark a library's running runs of a tag; the caller's lock shows that they are dead.

    Another library on the same server may watch the same video.
    """
    with get_client(sync_client=True) as client:
        _mark(client, _unfinished(client, [StateType.RUNNING], [tag, library_tag_name(library)]))


def mark_dead_runs(library: str, now: datetime | None = None) -> list[UUID]:
    """Mark the runs of this machine whose process is gone, and return their ids.

    Args:
        library: its scheduled runs are also marked if they were abandoned before they started.
    """
    with get_client(sync_client=True) as client:
        unfinished = _unfinished(client, UNFINISHED)
        dead = [
            run
            for run in unfinished
            if is_dead_run(run, work_pool_name(library), now or datetime.now(UTC))
        ]
        _mark(client, dead)
    return [run.id for run in dead]


def is_dead_run(run: FlowRun, pool: str, now: datetime) -> bool:
    """Check whether a run's process is gone, or whether a pending run of ``pool`` was abandoned."""
    if run.state_type == StateType.PENDING and run.start_time is None:
        since = run.state.timestamp if run.state else run.created
        if run.work_pool_name != pool:
            return False
        return since is not None and now - since > BEGINS_WITHIN
    host, here = HostIdentity.of(str(run.labels.get(WHERE))), HostIdentity.here()
    pid = (run.infrastructure_pid or "").rpartition(":")[2]
    if host != here or not pid.isdigit():
        return host is not None and host.ended_before(here)
    with suppress(psutil.Error, OverflowError):
        process = psutil.Process(int(pid))
        if process.status() != psutil.STATUS_ZOMBIE:
            # A younger process has reused the id.
            return process.create_time() > (run.start_time or now).timestamp() + SLACK_S
    return True


def _unfinished(
    client: SyncPrefectClient, states: Sequence[StateType], tags: Sequence[str] = ()
) -> list[FlowRun]:
    kinds = FlowRunFilterStateType(any_=list(states))
    tagged = FlowRunFilterTags(all_=list(tags)) if tags else None
    run_filter = FlowRunFilter(state=FlowRunFilterState(type=kinds), tags=tagged)
    return client.read_flow_runs(flow_run_filter=run_filter, limit=PAGE)


def _mark(client: SyncPrefectClient, dead: Sequence[FlowRun]) -> None:
    for run in dead:
        now = client.read_flow_run(run.id)
        if now.state and run.state and now.state.id != run.state.id:
            continue  # It changed its state in the meantime.
        client.set_flow_run_state(run.id, Crashed(message=GONE), force=True)
