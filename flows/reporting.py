"""Flow runs that report to Prefect's server, where it can be started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from domain.errors import SetupError
from services.prefect import api_url, login_for, prefect_environment
from services.prefect_internals import drain_events
from store.home import Home

SEND_TIMEOUT_S = 10.0
"""Events that are not sent by then are dropped."""


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
    # Prefect reads its settings when it is imported: now they are set.
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
            drain_events(SEND_TIMEOUT_S)
