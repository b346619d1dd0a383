from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from models import retries
from models.retries import CallFailed, call_with_retries, call_with_timeout, waiting_for_servers


class ServerSaid(Exception):
    """An error as the clients of model servers raise them."""

    def __init__(self, status: int, retry_after: str | None = None) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        headers = {} if retry_after is None else {"retry-after": retry_after}
        self.response = type("Response", (), {"headers": headers})()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were asked for, none of them taken."""
    pauses: list[float] = []
    monkeypatch.setattr(retries, "JITTER_S", 0.0)
    monkeypatch.setattr("models.retries.time.sleep", pauses.append)
    return pauses


def failing(*errors: Exception | str) -> Callable[[], str]:
    """A call that fails in these ways, one after another, and then answers."""
    left = list(errors)

    def call() -> str:
        step = left.pop(0) if left else "done"
        if isinstance(step, Exception):
            raise step
        return step

    return call


def soon() -> float:
    return time.monotonic() + 60


def test_a_call_that_answers_is_made_once(slept: list[float]) -> None:
    assert call_with_retries(failing("first", "second"), soon(), 5) == "first"
    assert slept == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_busy_servers_are_asked_again_after_growing_pauses(status: int, slept: list[float]) -> None:
    assert call_with_retries(failing(*[ServerSaid(status)] * 3), soon(), 3) == "done"
    assert slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("error", "left_s"),
    [
        *((ServerSaid(status), 60) for status in (400, 401, 404, 422)),
        (OSError("connection refused"), 60),
        # No pause goes past the deadline.
        (ServerSaid(429, "10"), 5),
    ],
)
def test_what_will_not_pass_in_time_is_not_repeated(
    error: Exception, left_s: int, slept: list[float]
) -> None:
    with pytest.raises(CallFailed) as caught:
        call_with_retries(failing(error), time.monotonic() + left_s, 3)
    assert caught.value.status == getattr(error, "status_code", None)
    assert str(error) in str(caught.value)
    assert slept == []


def test_retries_come_to_an_end(slept: list[float]) -> None:
    with pytest.raises(CallFailed) as caught:
        call_with_retries(failing(*[ServerSaid(503)] * 9), soon(), 2)
    assert caught.value.status == 503
    assert len(slept) == 2


def test_a_server_gets_no_longer_pause_than_is_reasonable(slept: list[float]) -> None:
    with waiting_for_servers(print):
        assert call_with_retries(failing(ServerSaid(429, "3600")), soon(), 3) == "done"
    assert slept == [retries.LONGEST_WAIT_S]


@pytest.mark.parametrize("wish", ["²", "soon", "", "-3"])
def test_a_wish_that_is_no_number_of_seconds_is_passed_over(slept: list[float], wish: str) -> None:
    assert call_with_retries(failing(ServerSaid(503, retry_after=wish)), soon(), 5) == "done"
    assert slept == [retries.FIRST_WAIT_S]


def test_the_status_is_found_behind_wrapping_errors() -> None:
    def call() -> str:
        try:
            raise ServerSaid(503)
        except ServerSaid as error:
            raise RuntimeError("the client gave up") from error

    with pytest.raises(CallFailed) as caught:
        call_with_timeout(5, call)
    assert caught.value.status == 503
    assert caught.value.transient


def test_a_call_that_hangs_or_is_too_late_is_given_up() -> None:
    released = threading.Event()
    try:
        with pytest.raises(CallFailed, match=r"no answer within 0\.1 s"):
            call_with_timeout(0.1, lambda: released.wait(30))
        with pytest.raises(CallFailed, match="no answer"):
            call_with_retries(lambda: released.wait(30), time.monotonic() - 1, 3)
    finally:
        released.set()
