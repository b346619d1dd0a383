"""Budgets of a run, hard with room for the final answer, and places on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agent.model_calls import Calls, RunBudget
from agent.reasoners.port import Unreadable
from agent.recorder import Recorder
from domain.calls import CallRecord
from domain.errors import BudgetExceeded, ModelError, SetupError
from domain.settings import AskSettings
from domain.trajectory import ModelCalled, PartialReply, RunEvent
from models.messages import Message, user
from store.files import NoFreeSlot, Slots
from strategies.homer.strategy import STRATEGY

ASK = AskSettings(tokens=50_000)


def ticking(*seconds: float) -> Iterator[float]:
    yield from seconds
    while True:
        yield seconds[-1]


def meter(*seconds: float, **more: Any) -> RunBudget:
    clock = ticking(*(seconds or (0.0,)))
    return RunBudget(ASK, now=lambda: next(clock), **more)


def test_seconds_count_from_the_start_and_from_what_was_spent_before() -> None:
    made = meter(10.0, 15.0)
    assert (made.clock, made.seconds_left) == (5.0, 295.0)
    resumed = meter(100.0, clock=120.0, tokens=700)
    assert (resumed.clock, resumed.tokens_left) == (120.0, 49_300)


def test_a_run_that_resumes_with_all_tokens_spent_makes_no_call() -> None:
    made = meter(tokens=50_000)
    assert "50000 tokens" in made.gone()
    assert "50000 tokens" in made.final_answer_exhausted()
    assert meter(tokens=49_999).gone() == ""


def test_a_growing_reply_is_reported_whole_with_its_round_and_purpose() -> None:
    reported: list[RunEvent] = []
    recorder = Recorder(None, "t", lambda *_: None, reported.append, strategy=STRATEGY)  # type: ignore[arg-type]
    listener = recorder.reply_listener(2, "act")
    assert listener is not None
    listener("Ann")
    listener("Ann opens")
    assert reported == [PartialReply(round=2, purpose="act", text=t) for t in ("Ann", "Ann opens")]
    assert recorder.events == []


def test_a_deadline_that_has_passed_leaves_nothing() -> None:
    made = meter(0.0, 301.0)
    assert made.seconds_left == 0.0
    assert "300 seconds" in made.gone()
    assert "300 seconds" in made.final_answer_exhausted()


@pytest.mark.parametrize(
    ("spent", "gone", "all_gone"),
    [
        ([], False, False),
        ([10_000] * 3, False, False),
        ([10_000] * 4, True, False),
        ([10_000] * 5, True, True),
        ([30_000], True, True),
        ([49_999, 1], True, True),
    ],
)
def test_room_for_final_answer_is_held_back(spent: list[int], gone: bool, all_gone: bool) -> None:
    made = meter()
    for tokens in spent:
        made.add(tokens - 1, 1)
    assert bool(made.gone()) is gone
    assert bool(made.final_answer_exhausted()) is all_gone


class Said(BaseModel):
    text: str


class FakeChat:
    """A chat that reports one call and then answers or fails."""

    sees = False
    model = "fake"

    def __init__(self, sink: Any, outcome: Any, reply: Any = None) -> None:
        self._sink, self._outcome, self._reply = sink, outcome, reply
        self.timeouts: list[float] = []
        self.rooms: list[int] = []

    def ask(self, messages: Any, schema: Any, **more: Any) -> Any:
        self.timeouts.append(more["timeout_s"])
        self.rooms.append(more["max_tokens"])
        error = str(self._outcome) if isinstance(self._outcome, Exception) else None
        self._sink(
            CallRecord("hash", more["purpose"], "p", "m", (), self._reply, error, 50, 5, 0.25, 12)
        )
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class QuietStore:
    """A store that takes no rows."""

    def begin(self) -> Any:
        raise AssertionError("not in this test")


class Quiet(Calls):
    """Calls that keep nothing in a store."""

    def _store_call(self, call: CallRecord) -> None:
        pass


def calls(made: RunBudget, outcome: Any, reply: Any = None) -> tuple[Calls, Recorder, FakeChat]:
    recorder = Recorder(QuietStore(), "test", lambda *_: None, strategy=STRATEGY)  # type: ignore[arg-type]
    chats: list[FakeChat] = []

    def open_chat(sink: Any, _replay: Any) -> Any:
        chats.append(FakeChat(sink, outcome, reply))
        return chats[-1]

    return Quiet(QuietStore(), recorder, made, open_chat), recorder, chats[-1]  # type: ignore[arg-type]


def say(made: Calls, *messages: Message, last: bool = False) -> Said:
    sent = messages or (user("hello"),)
    return made.ask("act", sent, Said, round=3, temperature=0.8, last=last)


def test_a_call_is_counted_and_told_with_its_round_and_its_deadline() -> None:
    spent = meter(0.0, 100.0)
    made, recorder, chat = calls(spent, Said(text="hi"))
    assert say(made).text == "hi"
    assert spent.tokens == 55
    (event,) = recorder.of(ModelCalled)
    assert (event.round, event.purpose, event.tokens_in, event.cost_usd) == (3, "act", 50, 0.25)
    assert chat.timeouts == [200.0]


def test_what_cannot_be_read_is_distinguished_from_a_model_out_of_reach() -> None:
    garbled, _, _ = calls(meter(), ModelError("no JSON"), reply={"text": "well"})
    with pytest.raises(Unreadable, match="no JSON"):
        say(garbled)
    down, recorder, _ = calls(meter(), ModelError("connection refused"))
    with pytest.raises(ModelError, match="refused") as raised:
        say(down)
    assert not isinstance(raised.value, Unreadable)
    assert recorder.of(ModelCalled)[0].error == "connection refused"


def test_a_call_that_runs_into_the_deadline_is_a_budget_that_is_gone() -> None:
    made, _, _ = calls(meter(0.0, 1.0, 1.0, 301.0), ModelError("timed out"))
    with pytest.raises(BudgetExceeded, match="during a call"):
        say(made)


def test_a_reply_has_no_more_room_than_the_budget_leaves() -> None:
    made, _, chat = calls(meter(tokens=49_000), Said(text="hi"))
    say(made, user("x" * 300))
    with pytest.raises(BudgetExceeded, match="too few tokens"):
        say(made, user("字" * 900))
    (room,) = chat.rooms
    assert 700 < room < 900
    images, _, chat = calls(meter(tokens=49_000), Said(text="hi"))
    with pytest.raises(BudgetExceeded):
        images.ask("assess", [user("see")], Said, round=1, temperature=0.0, images=[b"x"])
    assert chat.rooms == []


def test_a_call_that_cannot_be_afforded_is_not_made() -> None:
    made, _, chat = calls(meter(tokens=49_999), Said(text="hi"))
    with pytest.raises(BudgetExceeded):
        say(made, user("word " * 100))
    late, _, later = calls(meter(0.0, 301.0), Said(text="hi"))
    with pytest.raises(BudgetExceeded, match="300 seconds"):
        say(late)
    assert chat.timeouts == later.timeouts == []


def test_the_final_call_may_use_what_was_held_back() -> None:
    spent = meter()
    for _ in range(4):
        spent.add(9_999, 1)
    made, _, _ = calls(spent, Said(text="hi"))
    with pytest.raises(BudgetExceeded):
        say(made)
    assert say(made, last=True).text == "hi"


HOLDS = """
import sys, time
from pathlib import Path
from store.files import Slots

with Slots("a", 1, Path(sys.argv[1])).acquire():
    print("in", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("count", [1, 3])
def test_no_more_than_there_are_places_at_a_time(tmp_path: Path, count: int) -> None:
    lock, within, most = threading.Lock(), 0, 0

    def work(_number: int) -> None:
        nonlocal within, most
        with Slots("a", count, tmp_path).acquire(wait=lambda _s: None):
            with lock:
                within += 1
                most = max(most, within)
            threading.Event().wait(0.005)
            with lock:
                within -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(18)))
    assert most == count


def test_other_things_and_things_without_a_limit_do_not_wait(tmp_path: Path) -> None:
    with Slots("a", 1, tmp_path).acquire(), Slots("b", 1, tmp_path).acquire(0):
        with Slots("a", None, tmp_path).acquire(0):
            pass
        with pytest.raises(NoFreeSlot), Slots("a", 1, tmp_path).acquire(0):
            pass


def test_a_place_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), Slots("a", 1, tmp_path).acquire():
        raise ValueError("no")
    with Slots("a", 1, tmp_path).acquire(0):
        pass


def test_the_place_of_a_killed_process_is_free_again(tmp_path: Path) -> None:
    script = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as other:
        assert (other.stdout and other.stdout.readline()) == "in\n"
        with pytest.raises(NoFreeSlot), Slots("a", 1, tmp_path).acquire(0):
            pass
        os.kill(other.pid, signal.SIGKILL)
    with Slots("a", 1, tmp_path).acquire(10):
        pass


def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    with pytest.raises(SetupError, match="not yours alone"), Slots("a", 1, theirs).acquire():
        pass
    assert list(theirs.iterdir()) == []
