"""Steps as Prefect tasks, tags of runs, and open objects as parameters of flows.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar, cast

from prefect import Task, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from domain.errors import SetupError
from domain.settings import WorkSettings
from flows.executors import BACK_OFF_S, Step, is_transient
from flows.stream.interrupted import end_interrupted_streams
from models.extras import DASK, RAY
from services.prefect import library_id, library_tag_name
from services.stale_runs import mark_dead_runs, mark_killed_runs
from store.database import Store
from store.home import Home

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
        address = settings.scheduler or "local"
        init = {} if settings.scheduler else _ray_cluster(settings.workers, folder)
        with RayTaskRunner(address=address, init_kwargs=init) as runner:
            yield runner


def _ray_cluster(workers: int, folder: str) -> dict[str, Any]:
    return {
        "num_cpus": workers,
        "include_dashboard": False,
        "configure_logging": False,
        "log_to_driver": False,
        "_temp_dir": folder,
    }


Runner = TaskRunner[PrefectFuture[Any]]
Held = TypeVar("Held")


class PrefectExecutor:
    """Runs steps as tasks; those that are started in the workers of a task runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def run(self, step: Step, **arguments: object) -> object:
        """Run the task in this thread."""
        return task_of(step)(**arguments)

    def start(self, step: Step, **arguments: object) -> PrefectFuture[Any]:
        """Submit the task to the task runner."""
        return self._runner.submit(task_of(step), arguments)

    def run_all(self, step: Step, calls: Iterable[Mapping[str, object]]) -> None:
        """Submit the tasks, and wait for one after the other."""
        for future in [self.start(step, **call) for call in calls]:
            future.result()


@contextmanager
def prefect_executor(settings: WorkSettings, home: Home) -> Iterator[PrefectExecutor]:
    """Yield an executor with the workers that the settings name.

    Raises:
        SetupError: the settings name Dask or Ray, which is not installed.
    """
    with task_runner(settings, home) as runner:
        yield PrefectExecutor(runner)


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
    return thread_runner(settings.workers)


def thread_runner(workers: int) -> Runner:
    """Return a task runner of threads."""
    return cast("Runner", ThreadPoolTaskRunner[Any](max_workers=workers))


@contextmanager
def runs_of_video(store: Store, video: str) -> Iterator[None]:
    """Tag the flow runs in this block with a video; mark killed runs and streams first.

    The caller holds the video's lock, so no other run of it is alive.
    """
    tag, library = f"video:{video}", library_id(store)
    mark_killed_runs(library, tag)
    mark_dead_runs(library)
    end_interrupted_streams(store)
    with tags(tag, library_tag_name(library)):
        yield


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
