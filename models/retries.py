"""Calling a server that may be slow, busy or wrong: deadlines, and retries where they help."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
BUSY = 429


class CallFailed(Exception):
    """A call came to nothing. ``status`` is the HTTP status, if the server gave one."""

    def __init__(
        self, message: str, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later: the server is busy (429) or failing (5xx)."""
        return self.status is not None and (self.status == BUSY or self.status >= 500)


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of ``call``, which is given up (and left to itself) after ``seconds``.

    A client's own time limit often counts from the last byte; this one counts from the start.

    Raises:
        CallFailed: the time is over, or the call raised any error at all.
        KeyboardInterrupt: the call did.
    """
    results: list[T] = []
    errors: list[Exception] = []
    stops: list[KeyboardInterrupt] = []
    context = copy_context()

    def run() -> None:
        try:
            results.append(context.run(call))
        except Exception as error:  # noqa: BLE001 - an edge: clients have their own errors
            errors.append(error)
        except KeyboardInterrupt as stop:
            stops.append(stop)

    thread = threading.Thread(target=run, daemon=True, name="model-call")
    thread.start()
    thread.join(max(0.0, seconds))
    if results:
        return results[0]
    if stops:
        raise stops[0]
    if errors:
        raise _failure(errors[0]) from errors[0]
    raise CallFailed(f"no answer within {max(0.0, seconds):.1f} s")


def patiently(call: Callable[[], T], deadline: float, retries: int) -> T:
    """The result of ``call``, repeated with growing pauses where a failure may pass.

    Args:
        call: one request.
        deadline: the moment (``time.monotonic``) by which there must be an answer.
        retries: how often to repeat at most.

    Raises:
        CallFailed: the last failure, or the deadline has passed.
    """
    attempt = 0
    while True:
        try:
            return within(deadline - time.monotonic(), call)
        except CallFailed as failure:
            wait = _wait_s(failure, attempt)
            late = time.monotonic() + wait >= deadline
            if not failure.passing or attempt >= retries or late:
                raise
        time.sleep(wait)
        attempt += 1


def _wait_s(failure: CallFailed, attempt: int) -> float:
    wanted = failure.retry_after_s
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt if wanted is None else wanted)


def _failure(error: Exception) -> CallFailed:
    """Any client's error in our words, with what HTTP said about it."""
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
