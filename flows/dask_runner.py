"""Prefect's Dask task runner, an optional extra. Its modules are imported only when it is used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from domain.errors import SetupError
from domain.settings import WorkSettings
from models.extras import DASK
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
