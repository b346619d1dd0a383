"""Prefect: steps as its tasks, work of this process as a flow run, and runs whose process is gone.

Import this module only after Prefect's environment is set
(``services.supervisor.prefect_environment``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from os import getpid
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

import psutil
from prefect import Task, flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType, TaskRun
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.states import Crashed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from domain.errors import SetupError
from domain.settings import CLUSTERS, WorkSettings
from flows.executors import BACK_OFF_S, Executor, Step, is_transient
from flows.video_locks import end_interrupted_streams
from models.keys_and_packages import DASK, RAY
from services.supervisor import library_id, library_tag_name, work_pool_name
from store.database import Store
from store.home import Home
from store.postmaster import HostIdentity
from telemetry.tracing import bind_ids

# Prefect's Dask task runner, an optional extra. Its modules are imported only when it is used.


def dask_runner(settings: WorkSettings, home: Home) -> TaskRunner[Any]:
    """Return a runner on the Dask cluster at ``settings.scheduler``, else on a local one.

    The local cluster has one process per worker and ends with the run.

    Raises:
        SetupError: the packages are not installed.
    """
    if not DASK.installed:
        raise SetupError(f"perceiving on Dask needs packages that are not there; {DASK.hint}")
    # By default Dask writes its settings into the user's home directory.
    os.environ.setdefault("DASK_CONFIG", str(home.root / "dask"))
    from prefect_dask.task_runners import DaskTaskRunner

    if settings.scheduler:
        return DaskTaskRunner(address=settings.scheduler)
    dask_cluster = {
        "n_workers": settings.workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "local_directory": str(home.root / "dask"),
    }
    return DaskTaskRunner(cluster_kwargs=dask_cluster)


@contextmanager
def ray_runner(settings: WorkSettings) -> Iterator[TaskRunner[Any]]:
    """Yield a runner on the Ray cluster at ``settings.scheduler``, else on a local one.

    The local cluster has one process per worker and ends with the run.

    Raises:
        SetupError: the packages are not installed.
    """
    if not RAY.installed:
        raise SetupError(f"perceiving on Ray needs packages that are not there; {RAY.hint}")
    # Ray would report its use to its vendor.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from prefect_ray.task_runners import RayTaskRunner

    # Ray would create a token in the user's home directory.
    if not settings.scheduler:
        os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(32))
    # The path of a socket must be short; the folder is removed after the run.
    with TemporaryDirectory(prefix="homer-ray-", ignore_cleanup_errors=True) as folder:
        own_cluster = {
            "num_cpus": settings.workers,
            "include_dashboard": False,
            "configure_logging": False,
            "log_to_driver": False,
            "_temp_dir": folder,
        }
        with RayTaskRunner(
            address=settings.scheduler or "local",
            init_kwargs={} if settings.scheduler else own_cluster,
        ) as runner:
            yield runner


Runner = TaskRunner[PrefectFuture[Any]]
Held = TypeVar("Held")


@contextmanager
def prefect_executor(settings: WorkSettings, home: Home) -> Iterator[Executor]:
    """Yield an executor that runs steps as tasks, and starts them where the settings say.

    Raises:
        SetupError: the settings name Dask or Ray, which is not installed.
    """
    with task_runner(settings, home) as runner:
        yield Executor(
            lambda step, arguments: task_of(step)(**arguments),
            lambda step, arguments: runner.submit(task_of(step), dict(arguments)),
            elsewhere=settings.where in CLUSTERS,
        )


@cache
def task_of(step: Step) -> Task[..., object]:
    """Return the task of a step, with the same retries as those of any executor."""
    decorate = task(
        name=step.name,
        task_run_name=step.run_name,
        retries=len(BACK_OFF_S),
        retry_delay_seconds=list(BACK_OFF_S),
        retry_condition_fn=_has_transient_error,
        cache_policy=NO_CACHE,
    )
    return decorate(step.call)


def _has_transient_error(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    result = state.result(raise_on_failure=False)
    return isinstance(result, BaseException) and is_transient(result)


def task_runner(settings: WorkSettings, home: Home) -> AbstractContextManager[Runner]:
    """Return the task runner in which clips are perceived.

    Raises:
        SetupError: the settings name Dask or Ray, which is not installed.
    """
    if settings.where == "dask":
        return dask_runner(settings, home)
    if settings.where == "ray":
        return ray_runner(settings)
    return cast("Runner", ThreadPoolTaskRunner[Any](max_workers=settings.workers))


class InProcess(Generic[Held]):
    """An open object as a parameter of a flow, which is neither recorded nor sent elsewhere.

    Prefect records the parameters of a run on its server, and pickles them for tasks in other
    processes. Without attributes of its own this object is recorded as its class's name, and its
    pickle is empty.
    """

    __slots__ = ("_object",)

    def __init__(self, held: Held | None) -> None:
        self._object = held

    def get(self) -> Held:
        """Return the object.

        Raises:
            RuntimeError: this is a copy in another process.
        """
        if self._object is None:
            raise RuntimeError("the flow runs only in the process of the command that starts it")
        return self._object

    def __reduce__(self) -> tuple[type[InProcess[Held]], tuple[None]]:
        return InProcess, (None,)


@flow(name="homer", flow_run_name="{run}", validate_parameters=False)
def in_process(
    run: str,  # noqa: ARG001 - names the run
    opened: InProcess[tuple[Callable[[Executor], Held], WorkSettings, Home]],
) -> Held:
    """Do what is open in this process, in tasks of this flow run."""
    label_run()
    call, settings, home = opened.get()
    with (
        bind_ids(flow_run=str(flow_run.id)),
        prefect_executor(settings, home) as executor,
    ):
        return call(executor)


def run_as_flow(
    call: Callable[[Executor], Held],
    store: Store,
    settings: WorkSettings,
    name: str,
    run: str,
    tag: str,
    *,
    alone: bool,
) -> Held:
    """Run ``call`` as a run of a flow of this name; mark killed runs and streams first."""
    library = library_id(store)
    if alone:
        mark_killed_runs(library, tag)
    mark_dead_runs(library)
    end_interrupted_streams(store)
    with tags(tag, library_tag_name(library)):
        # The server stores the parameters: after a deletion it has no more than the run's name.
        work = in_process.with_options(name=name)
        return work(run, InProcess((call, settings, store.home)))


# Flow runs whose process is gone, which Prefect's pages would show as "Running" for ever.
#
# A run is labelled with its process; at the start of a flow the processes of this machine's runs
# are checked. Runs of other machines are not changed.


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
