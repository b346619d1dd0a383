"""Flow runs that report to Prefect's server, where it can be started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.strategy import Strategy
from domain.errors import SetupError
from flows.build import Built, OnStep, OnUse, build, check_builds
from flows.executors import Executor
from flows.workspace import Workspace
from services.prefect import api_url, login_for, prefect_environment
from services.prefect_internals import drain_events
from store.home import Home
from store.queries.videos import find_video

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


# A build of a strategy's memory that Prefect's server shows, where it can be started.


def build_reported(
    workspace: Workspace,
    name: str,
    strategy: Strategy,
    on_step: OnStep,
    api: str | None,
    *,
    again: bool = False,
    on_use: OnUse = lambda *_: None,
) -> Built:
    """Build as ``flows.build.build`` does, in a flow that reports to a server.

    Args:
        name: the video's id or title.
        on_step: called after each step.
        api: the server's; None: without one.
        again: delete what was built before, except frames.
        on_use: called before the first step and after each, where a language model writes.
    """

    def run(executor: Executor | None = None) -> Built:
        return build(
            workspace, name, strategy, on_step, again=again, on_use=on_use, executor=executor
        )

    check_builds(strategy)
    if api is None:
        return run()
    with workspace.store.begin() as session:
        video = find_video(session, name)
    with report_to_prefect(workspace.home, api):
        # Prefect reads its settings when it is imported: now they are set.
        from flows.build_flow import run_build_flow

        return run_build_flow(workspace.store, video, strategy.name, run)
