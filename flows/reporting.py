"""Running flows against Prefect's server, where that comes up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from domain.errors import SetupError
from flows.server import api_url, environment
from store.home import Home


def connect(home: Home, said: Callable[[str], None]) -> str | None:
    """The API that flows report to; None where the server does not come up, which is said."""
    try:
        return api_url(home)
    except SetupError as error:
        said(f"going on without Prefect: {error}")
        return None


@contextmanager
def reporting(home: Home, api: str) -> Iterator[None]:
    """Flows that run in here report to ``api``."""
    os.environ.update(environment(home))
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        temporary_settings,
    )

    # With a heartbeat every flow waits up to a second for its thread to end.
    with temporary_settings({PREFECT_API_URL: api, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield
