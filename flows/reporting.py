"""Work as flow runs that Prefect's server shows where it can be started, else as plain calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from domain.errors import SetupError
from domain.settings import WorkSettings
from flows.executors import Executor, direct_executor
from services.prefect import api_url, login_for, prefect_environment
from services.prefect_internals import drain_events
from store.database import Store
from store.home import Home

T = TypeVar("T")

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


def run_reported(
    call: Callable[[Executor], T],
    store: Store,
    api: str | None,
    *,
    flow: str,
    run: str,
    tag: str,
    alone: bool = True,
    settings: WorkSettings | None = None,
) -> T:
    """Run ``call`` with what runs its steps: as a flow run of Prefect's, or as plain calls.

    Args:
        store: the library that it is done in.
        api: the server's; None: there is none, and nothing is reported.
        flow: its name on the server's pages.
        run: the name of this run of it there.
        alone: the caller holds a lock, so that no other run of this tag is alive.
        settings: where the steps that are started run; None: in a thread.
    """
    work = settings or WorkSettings()
    if api is None:
        with direct_executor(work.workers) as executor:
            return call(executor)
    with report_to_prefect(store.home, api):
        # Prefect reads its settings when it is imported: now they are set.
        from flows.prefect_executor import run_as_flow

        return run_as_flow(call, store, work, flow, run, tag, alone=alone)
