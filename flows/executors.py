"""Steps of a flow with their retries, and the executor that runs them without a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol, Self

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

from domain.errors import DatabaseError, ModelError, NotDelivered, ReplayMiss
from flows.clip_memory import ClipFailed

BACK_OFF_S = (1.0, 4.0, 15.0)
"""Seconds to wait before each retry of a step."""


@dataclass(frozen=True)
class Step:
    """A step of a flow, which is safe to repeat. Every executor retries it alike.

    ``run_name`` is the name of one run of it; in braces are arguments of ``call``.
    """

    name: str
    call: Callable[..., object]
    run_name: str | None = None


class Waitable(Protocol):
    """A step that runs concurrently; ``result`` waits for it and raises its error."""

    def result(self) -> Any:
        """Wait for the end of the step."""


class Executor(Protocol):
    """Runs steps, and again after each back-off while their error is transient."""

    def run(self, step: Step, **arguments: object) -> object:
        """Run a step in this thread."""

    def start(self, step: Step, **arguments: object) -> Waitable:
        """Start a step, concurrently with others."""

    def run_all(self, step: Step, calls: Iterable[Mapping[str, object]]) -> None:
        """Run a step with each of these arguments, several at a time, and wait for all."""


def is_transient(error: BaseException) -> bool:
    """Check whether a retry may succeed: a model, a webhook or the database did not answer."""
    return isinstance(error, ModelError | DatabaseError | NotDelivered) and not isinstance(
        error, ClipFailed | ReplayMiss
    )


class DirectExecutor:
    """Runs steps as plain calls, in ``workers`` threads those that are started."""

    def __init__(self, workers: int = 1) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="step")

    def run(self, step: Step, **arguments: object) -> object:
        """Run the step in this thread."""
        return _call_with_retries(step, arguments)

    def start(self, step: Step, **arguments: object) -> Waitable:
        """Run the step in a thread, in a copy of this context."""
        return self._threads.submit(copy_context().run, _call_with_retries, step, arguments)

    def run_all(self, step: Step, calls: Iterable[Mapping[str, object]]) -> None:
        """Run the step in threads; the first error is raised while others may still run."""
        started = [self._threads.submit(_call_with_retries, step, call) for call in calls]
        for future in as_completed(started):
            future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # Ctrl-C does not wait for steps that will be run again anyway.
        self._threads.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)


def _call_with_retries(step: Step, arguments: Mapping[str, object]) -> object:
    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        # tenacity asks for a wait after the last attempt too.
        wait=wait_chain(*map(wait_fixed, (*BACK_OFF_S, 0.0))),
        stop=stop_after_attempt(len(BACK_OFF_S) + 1),
        sleep=time.sleep,
        reraise=True,
    )
    return retrying(step.call, **arguments)
