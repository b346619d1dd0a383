"""Steps of a flow, and the executor that runs them with their retries.

Prefect's tasks are one way to run them (``flows.prefect_executor``), plain calls the other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from domain.errors import DatabaseError, ModelError, NotDelivered, ReplayMiss, SetupError
from domain.settings import WorkSettings
from services.supervisor import api_url, drain_events, login_for, prefect_environment
from store.database import Store
from store.home import Home

BACK_OFF_S = (1.0, 4.0, 15.0)
"""Seconds to wait before each retry of a step."""


class ClipFailed(ModelError):
    """A clip was marked as failed, with the reason; another run retries it."""


@dataclass(frozen=True)
class Step:
    """A step of a flow, which is safe to repeat. It is retried alike wherever it runs.

    ``run_name`` is the name of one run of it; in braces are arguments of ``call``.
    """

    name: str
    call: Callable[..., object]
    run_name: str | None = None


class Waitable(Protocol):
    """A step that runs concurrently; ``result`` waits for it and raises its error."""

    def result(self) -> Any:
        """Wait for the end of the step."""


def is_transient(error: BaseException) -> bool:
    """Check whether a retry may succeed: a model, a webhook or the database did not answer."""
    return isinstance(error, ModelError | DatabaseError | NotDelivered) and not isinstance(
        error, ClipFailed | ReplayMiss
    )


class Executor:
    """Runs steps, and again after each back-off while their error is transient.

    Args:
        call: runs a step with these arguments in this thread.
        submit: starts a step with these arguments, concurrently with others.
        elsewhere: what is started runs in another process or machine, so its arguments are sent.
    """

    def __init__(
        self,
        call: Callable[[Step, Mapping[str, object]], object],
        submit: Callable[[Step, Mapping[str, object]], Waitable],
        *,
        elsewhere: bool = False,
    ) -> None:
        self._call, self._submit, self.elsewhere = call, submit, elsewhere

    def run(self, step: Step, **arguments: object) -> object:
        return self._call(step, arguments)

    def start(self, step: Step, **arguments: object) -> Waitable:
        """Start a step, concurrently with others."""
        return self._submit(step, arguments)

    def run_all(self, step: Step, calls: Iterable[Mapping[str, object]]) -> None:
        """Run a step with each of these arguments, several at a time, and wait for all."""
        for started in [self._submit(step, arguments) for arguments in calls]:
            started.result()


@contextmanager
def direct_executor(workers: int = 1) -> Iterator[Executor]:
    """Yield an executor of plain calls, with so many threads for steps that are started."""
    threads = ThreadPoolExecutor(workers, thread_name_prefix="step")
    wait = True

    def submit(step: Step, arguments: Mapping[str, object]) -> Waitable:
        return threads.submit(copy_context().run, call_with_retries, step, arguments)

    try:
        yield Executor(call_with_retries, submit)
    except KeyboardInterrupt:
        wait = False  # Ctrl-C does not wait for steps that will be run again anyway.
        raise
    finally:
        threads.shutdown(wait=wait, cancel_futures=True)


def call_with_retries(step: Step, arguments: Mapping[str, object]) -> object:
    """Run a step in this thread as a plain call."""
    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        # tenacity asks for a wait after the last attempt too.
        wait=wait_chain(*map(wait_fixed, (*BACK_OFF_S, 0.0))),
        stop=stop_after_attempt(len(BACK_OFF_S) + 1),
        sleep=time.sleep,
        reraise=True,
    )
    return retrying(step.call, **arguments)


# Work as flow runs that Prefect's server shows where it can be started, else as plain calls.


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
