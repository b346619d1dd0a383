"""Deadlines and retries of calls to model servers, and runs that wait for a server to come back."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential_jitter,
    wait_random,
)

from domain.errors import SetupError

T = TypeVar("T")

FIRST_WAIT_S, JITTER_S = 0.5, 0.25
LONGEST_WAIT_S = 300.0
"""A server may ask for a longer pause. It gets this one, and is asked again."""
RUN_RETRIES = 7
"""Fewest retries in a run: together they wait a minute, after which most quotas begin anew."""
PROBE_S = 60.0
LONGEST_OUTAGE_MIN = 60
BUSY, NOT_IMPLEMENTED = 429, 501
UNPAID = re.compile(r"insufficient_quota|enforced_spend_limit_reached")
"""No waiting helps against these, although their status is ``BUSY``."""
_DROPPED = re.compile(r"Connect|Network|Read|Write|Protocol")
_TIMEOUT = re.compile(r"Timeout|TimedOut")
_RETRY_DELAY = re.compile(r"retry_?delay\W+(?:seconds\W+)?(\d+(?:\.\d+)?)", re.IGNORECASE)
"""The ``RetryInfo`` of Google's errors, as JSON and as a protocol buffer print it."""


class CallFailed(Exception):
    """A call failed. ``status`` is the HTTP status, if the server gave one.

    ``reply`` is what the server said, of which a client's message may tell no more than a part;
    ``kinds`` are the names of the client's errors: each has its own, but all name them alike.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        reply: str = "",
        kinds: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.retry_after_s, self.reply = status, retry_after_s, reply or message
        self._timed_out = status is None and _TIMEOUT.search(kinds) is not None
        self._dropped = status is None and _DROPPED.search(kinds) is not None

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later: the server is busy, failing, or hung up."""
        if self.status is None:
            return self._dropped and not self._timed_out
        if self.status == BUSY:
            return UNPAID.search(self.reply) is None
        return self.status >= 500 and self.status != NOT_IMPLEMENTED

    @property
    def out(self) -> bool:
        """Whether the server may be out, which a small request will tell."""
        return self.transient or self._timed_out


class Waiting:
    """Has the calls of a run, for which nobody waits, wait for servers that are out.

    A call that keeps failing is followed by the least request that the server may be sent. If that
    is answered, only the call is at fault. If it is not, this and other calls wait, and one of them
    tries again once a minute. Safe between threads.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._lock = say, threading.Lock()
        self._ended: SetupError | None = None

    def call(self, seconds: float, call: Callable[[], T], retries: int, probe: Probe) -> T:
        """Return the result of ``call``, which may take ``seconds`` each time.

        Raises:
            CallFailed: The last failure, of a server that is not out.
            SetupError: The server has been out for an hour.
        """
        retrying = Retrying(
            retry=retry_if_exception(_is_transient),
            wait=_wait_s,
            stop=stop_after_attempt(max(retries, RUN_RETRIES) + 1),
            sleep=time.sleep,
            reraise=True,
        )
        while True:
            with self._lock:  # Another call may wait for a server.
                if self._ended is not None:
                    raise self._ended
            try:
                return retrying(lambda: call_with_timeout(seconds, call))
            except CallFailed as failure:
                if not (failure.out and self._waited(probe, failure)):
                    raise

    def _waited(self, probe: Probe, failure: CallFailed) -> bool:
        """Wait until the server answers; return whether it did not at first."""
        if self._lock.locked():
            return True  # Another call waits for it.
        why = f"status {failure.status}" if failure.status else "no connection"
        with self._lock:
            for minutes in range(LONGEST_OUTAGE_MIN):
                try:
                    call_with_timeout(PROBE_S, probe)
                except CallFailed as error:
                    out = error.out
                else:
                    out = False
                if not out:
                    if minutes:
                        self._say(f"the model answers again, after {minutes} minutes")
                    return minutes > 0
                if not minutes:
                    self._say(
                        f"the model is away ({why}): it is asked again once a minute, and nothing "
                        "is lost; to stop, press Ctrl-C, and later run the same command"
                    )
                time.sleep(PROBE_S)
            self._ended = SetupError(
                f"the model has been away for an hour ({why}): run the same command when it is back"
            )
            raise self._ended


Probe = Callable[[], object]
"""The least request that a server can be sent."""

_WAITING: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


@contextmanager
def waiting_for_servers(say: Callable[[str], None]) -> Iterator[None]:
    """Have calls in this block wait, for up to an hour, while a server is out (``Waiting``)."""
    token = _WAITING.set(Waiting(say))
    try:
        yield
    finally:
        _WAITING.reset(token)


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
        failed = errors[0]
        text, status = f"{type(failed).__name__}: {failed}", _status(failed)
        links = [*_chain(failed)]
        kinds = " ".join(kind.__name__ for link in links for kind in type(link).__mro__)
        reply = " ".join([text, *(f"{link} {getattr(link, 'body', '')}" for link in links)])
        wish = _retry_after_s(failed, reply)
        raise CallFailed(" ".join(text.split()), status, wish, reply, kinds) from errors[0]
    raise CallFailed(f"no answer within {max(0.0, seconds):.1f} s", kinds="Timeout")


def call_with_retries(
    call: Callable[[], T], deadline: float, retries: int, probe: Probe = lambda: None
) -> T:
    """Return the result of ``call``, retried with growing pauses after transient failures.

    Within ``waiting_for_servers`` only each try has its time, and pauses are no part of it.

    Args:
        deadline: When there must be an answer, on the clock of ``time.monotonic``. No pause goes
            past it.
        retries: How often to repeat at most.
        probe: A small request, which tells a server that is out from one that fails at ``call``.

    Raises:
        CallFailed: The last failure, or the deadline has passed.
        SetupError: The server has been out for an hour.
    """
    left_s = deadline - time.monotonic()
    if (waiting := _WAITING.get()) is not None:
        return waiting.call(left_s, call, retries, probe)
    retrying = Retrying(
        retry=retry_if_exception(_is_transient),
        wait=_wait_s,
        stop=stop_after_attempt(retries + 1) | stop_before_delay(left_s),
        reraise=True,
    )
    return retrying(lambda: call_with_timeout(deadline - time.monotonic(), call))


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, CallFailed) and error.transient


def _wait_s(state: RetryCallState) -> float:
    """Return the seconds that the server asked for, else twice as many as before; and a little."""
    failure = state.outcome.exception() if state.outcome else None
    wish = failure.retry_after_s if isinstance(failure, CallFailed) else None
    if wish is not None:
        return min(LONGEST_WAIT_S, wish) + wait_random(0, JITTER_S)(state)
    return wait_exponential_jitter(FIRST_WAIT_S, LONGEST_WAIT_S, jitter=JITTER_S)(state)


def _status(error: BaseException) -> int | None:
    for link in _chain(error):
        for holder in (link, getattr(link, "response", None)):
            for name in ("status_code", "code"):
                status = getattr(holder, name, None)
                if isinstance(status, int) and 100 <= status < 600:
                    return status
    return None


def _retry_after_s(error: BaseException, reply: str) -> float | None:
    """Return the seconds of ``Retry-After``, in either form, or of Google's ``RetryInfo``."""
    for link in _chain(error):
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = str(headers.get("retry-after", "") if headers is not None else "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            date = None
        if date is not None:
            return max(0.0, (date - datetime.now(UTC)).total_seconds())
    delay = _RETRY_DELAY.search(reply)
    return float(delay[1]) if delay else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
