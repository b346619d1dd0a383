"""Deadlines and retries of calls to model servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
)

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
BUSY = 429


class CallFailed(Exception):
    """A call failed. ``status`` is the HTTP status, if the server gave one."""

    def __init__(
        self, message: str, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later: the server is busy (429) or failing (5xx)."""
        return self.status is not None and (self.status == BUSY or self.status >= 500)


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of ``call``; abandon it, still running, after ``seconds``.

    A client's own time-out often counts from the last byte; this one counts from the start.

    Raises:
        CallFailed: The time is over, or the call raised any ``Exception``.
        KeyboardInterrupt: The call raised it.
    """
    results: list[T] = []
    errors: list[Exception] = []
    interrupts: list[KeyboardInterrupt] = []
    context = copy_context()

    def run() -> None:
        try:
            results.append(context.run(call))
        except Exception as error:  # noqa: BLE001 - an edge: clients have their own errors
            errors.append(error)
        except KeyboardInterrupt as interrupt:
            interrupts.append(interrupt)

    thread = threading.Thread(target=run, daemon=True, name="model-call")
    thread.start()
    thread.join(max(0.0, seconds))
    if results:
        return results[0]
    if interrupts:
        raise interrupts[0]
    if errors:
        raise _failure(errors[0]) from errors[0]
    raise CallFailed(f"no answer within {max(0.0, seconds):.1f} s")


def call_with_retries(call: Callable[[], T], deadline: float, retries: int) -> T:
    """Return the result of ``call``, retried with growing pauses after transient failures.

    Args:
        deadline: When there must be an answer, on the clock of ``time.monotonic``. No pause goes
            past it.
        retries: How often to repeat at most.

    Raises:
        CallFailed: The last failure, or the deadline has passed.
    """
    retrying = Retrying(
        retry=retry_if_exception(_is_transient),
        wait=_wait_s,
        stop=stop_after_attempt(retries + 1) | stop_before_delay(deadline - time.monotonic()),
        reraise=True,
    )
    return retrying(lambda: call_with_timeout(deadline - time.monotonic(), call))


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.transient


def _wait_s(state: RetryCallState) -> float:
    """Return the seconds that the server asked for, else twice as many as before."""
    failure = state.outcome.exception() if state.outcome else None
    if isinstance(failure, CallFailed) and failure.retry_after_s is not None:
        return min(LONGEST_WAIT_S, failure.retry_after_s)
    return wait_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)(state)


def _failure(error: Exception) -> CallFailed:
    """Convert any client's error, with the HTTP status and ``Retry-After`` found in it."""
    text = f"{type(error).__name__}: {error}"
    return CallFailed(" ".join(text.split()), _status(error), _retry_after_s(error))


def _status(error: BaseException) -> int | None:
    for link in _chain(error):
        for holder in (link, getattr(link, "response", None)):
            for name in ("status_code", "code"):
                status = getattr(holder, name, None)
                if isinstance(status, int) and 100 <= status < 600:
                    return status
    return None


def _retry_after_s(error: BaseException) -> float | None:
    for link in _chain(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after", "") if headers is not None else ""
        if str(value).isdecimal():
            return float(value)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
