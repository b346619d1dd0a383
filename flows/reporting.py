"""Running flows against Prefect's server, where that comes up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty

from domain.errors import SetupError
from services.prefect import api_url, environment
from services.prefect_login import login_for
from store.home import Home

SENT_WITHIN_S = 10.0


def connect(home: Home, said: Callable[[str], None]) -> str | None:
    """The API that flows report to; None where the server does not come up, which is said."""
    try:
        return api_url(home)
    except SetupError as error:
        said(f"going on without Prefect: {error}")
        return None


@contextmanager
def reporting(home: Home, api: str) -> Iterator[None]:
    """Have flows that run in here report to ``api``."""
    os.environ.update(environment(home))
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    # With a heartbeat every flow waits up to a second for its thread to end.
    login = {PREFECT_API_AUTH_STRING: login_for(home, api)}
    with temporary_settings(
        {PREFECT_API_URL: api, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} | login
    ):
        try:
            yield
        finally:
            _send_what_is_left()


def _send_what_is_left() -> None:
    """Ends the sender of events: Prefect keeps one a process, bound to the first server it met.

    One whose server is gone would try every event for seconds more, and the process could not
    end before it; what it has not sent by then is given up.
    """
    from prefect._internal.concurrency.services import _active_services
    from prefect.events.worker import EventsWorker

    workers = [service for service in _active_services if isinstance(service, EventsWorker)]
    EventsWorker.drain_all(timeout=SENT_WITHIN_S, at_exit=False)
    for worker in workers:
        with suppress(Empty):
            while True:
                worker._queue.get_nowait()
        worker._queue.put_nowait(None)
