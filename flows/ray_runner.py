"""Prefect's Ray task runner, from an extra. Import its modules only where it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from domain.errors import SetupError
from domain.settings import WorkSettings
from models.extras import RAY

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner


@contextmanager
def ray_runner(settings: WorkSettings) -> Iterator[TaskRunner[Any]]:
    """Workers of a Ray cluster: of the one at ``settings.scheduler``, else of one of this run.

    Its own is on this machine only, a process a worker, and ends with the run.

    Raises:
        SetupError: the packages are not there.
    """
    if not RAY.installed:
        raise SetupError(f"perceiving on Ray needs packages that are not there; {RAY.hint}")
    # Ray would tell its makers that it is used.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from prefect_ray.task_runners import RayTaskRunner

    # Ray makes itself a token, in the user's folder.
    if not settings.scheduler:
        os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(32))
    # In a path as short as a socket's must be; what Ray leaves there goes with the run.
    with TemporaryDirectory(prefix="homer-ray-", ignore_cleanup_errors=True) as folder:
        address = settings.scheduler or "local"
        own = {} if settings.scheduler else _cluster(settings.workers, folder)
        with RayTaskRunner(address=address, init_kwargs=own) as runner:
            yield runner


def _cluster(workers: int, folder: str) -> dict[str, Any]:
    return {
        "num_cpus": workers,
        "include_dashboard": False,
        "configure_logging": False,
        "log_to_driver": False,
        "_temp_dir": folder,
    }
