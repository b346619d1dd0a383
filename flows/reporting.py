"""Flow runs that report to Prefect's server, where it can be started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty

from domain.errors import SetupError
from services.prefect import api_url, login_for, prefect_environment
from store.home import Home

SEND_TIMEOUT_S = 10.0


def connect_to_prefect(home: Home, said: Callable[[str], None]) -> str | None:
    """Return the API that flows report to; None, with a message, if the server does not start."""
    try:
        return api_url(home)
    except SetupError as error:
        said(f"going on without Prefect: {error}")
        return None


@contextmanager
def report_to_prefect(home: Home, api: str) -> Iterator[None]:
    """Let flows that run in this block report to ``api``."""
    os.environ.update(prefect_environment(home))
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    # With a heartbeat, every flow waits up to a second for the heartbeat's thread.
    login = {PREFECT_API_AUTH_STRING: login_for(home, api)}
    with temporary_settings(
        {PREFECT_API_URL: api, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} | login
    ):
        try:
            yield
        finally:
            _drain_events()


def _drain_events() -> None:
    """Stop Prefect's event worker, which is bound to the first server that it connected to.

    With its server gone, the worker would retry every event for seconds, and the process could
    not exit. Events that are not sent within ``SEND_TIMEOUT_S`` are dropped.
    """
    from prefect._internal.concurrency.services import _active_services
    from prefect.events.worker import EventsWorker

    workers = [service for service in _active_services if isinstance(service, EventsWorker)]
    EventsWorker.drain_all(timeout=SEND_TIMEOUT_S, at_exit=False)
    for worker in workers:
        with suppress(Empty):
            while True:
                worker._queue.get_nowait()
        worker._queue.put_nowait(None)
