"""Steps as Prefect tasks, and work of this process as a flow run whose steps they are.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar, cast

from prefect import Task, flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from domain.errors import SetupError
from domain.settings import CLUSTERS, WorkSettings
from flows.executors import BACK_OFF_S, Executor, Step, is_transient
from flows.video_locks import end_interrupted_streams
from models.keys_and_packages import DASK, RAY
from services.prefect import library_id, library_tag_name
from services.stale_runs import label_run, mark_dead_runs, mark_killed_runs
from store.database import Store
from store.home import Home
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
