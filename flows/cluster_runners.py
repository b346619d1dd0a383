"""Prefect's Dask task runner, an optional extra. Its modules are imported only when it is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from domain.errors import SetupError
from domain.settings import WorkSettings
from models.extras import DASK, RAY
from store.home import Home

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner


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
    return DaskTaskRunner(cluster_kwargs=_dask_cluster(settings.workers, home))


def _dask_cluster(workers: int, home: Home) -> dict[str, Any]:
    return {
        "n_workers": workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
        "local_directory": str(home.root / "dask"),
    }


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
