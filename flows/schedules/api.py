"""Access to the schedules through Prefect's API, whose server is started if necessary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx

from domain.errors import SetupError
from flows.executors import report_to_prefect
from flows.schedules.kinds import declared_schedules
from flows.video_locks import end_interrupted_streams
from services.prefect import api_url, library_id, work_pool_name
from services.supervisor import ScheduleWorker
from store.database import open_store
from store.home import Home

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleDeployments


@contextmanager
def open_schedules(
    home: Home, api: str | None = None, *, look: bool = False
) -> Iterator[ScheduleDeployments]:
    """Open the schedules of a library, with those of ``homer.toml`` and the default ones.

    Args:
        api: Prefect's API; None: that of ``$PREFECT_API_URL``, else Homer's own server, started.
        look: only read the schedules; create and change nothing.

    Raises:
        SetupError: the server does not start or cannot be reached, ``homer.toml`` is wrong, or
            the library cannot be opened.
    """
    with open_store(home) as store:
        library = library_id(store)
    with report_to_prefect(home, api or api_url(home)):
        # Prefect reads its settings when it is imported: now they are set.
        from prefect.client.orchestration import get_client

        from flows.schedules.deployments import ScheduleDeployments

        try:
            with get_client(sync_client=True) as client:
                deployments = ScheduleDeployments(client, library)
                if not look:
                    deployments.begin(declared_schedules(home.config))
                yield deployments
        except httpx.HTTPError as error:
            raise SetupError(f"Prefect's server cannot be reached or refused: {error}") from error


def start_schedules(home: Home, api: str) -> str:
    """Start the worker that runs the schedules; return the address of its health check.

    First the state of an earlier worker is cleaned up: runs whose process is gone are marked as
    crashed, interrupted streams as ended, and of the missed runs of each schedule only the last
    is kept.

    Raises:
        SetupError: the worker does not start, or ``homer.toml`` is wrong.
    """
    with open_store(home) as store:
        library = library_id(store)
        end_interrupted_streams(store)
    with open_schedules(home, api) as deployments:
        # It imports Prefect, whose settings are set by now.
        from services.stale_runs import mark_dead_runs

        mark_dead_runs(library)
        deployments.skip_missed(datetime.now(UTC))
    return ScheduleWorker(home).start(api, work_pool_name(library))
