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


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_wrong_request_is_not_repeated(status: int, slept: list[float]) -> None:
    with pytest.raises(CallFailed) as caught:
        call_with_retries(failing(ServerSaid(status)), soon(), 3)
    assert caught.value.status == status
    assert slept == []


def test_an_error_without_a_status_is_not_repeated(slept: list[float]) -> None:
    with pytest.raises(CallFailed, match="OSError: connection refused"):
        call_with_retries(failing(OSError("connection refused")), soon(), 3)
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


def test_no_pause_goes_past_the_deadline(slept: list[float]) -> None:
    with pytest.raises(CallFailed):
        call_with_retries(failing(ServerSaid(429, "10")), time.monotonic() + 5, 3)
    assert slept == []


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


def test_a_call_that_hangs_is_given_up() -> None:
    released = threading.Event()
    try:
        with pytest.raises(CallFailed, match=r"no answer within 0\.1 s"):
            call_with_timeout(0.1, lambda: released.wait(30))
    finally:
        released.set()


def test_a_deadline_in_the_past_is_no_answer() -> None:
    released = threading.Event()
    try:
        with pytest.raises(CallFailed, match="no answer"):
            call_with_retries(lambda: released.wait(30), time.monotonic() - 1, 3)
    finally:
        released.set()
