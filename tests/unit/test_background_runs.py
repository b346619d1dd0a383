"""Questions that are searched beside whoever asked: followed, stopped, and told how they ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from domain.asking import Question
from domain.errors import HomerError, InputError, ModelError
from domain.trajectory import ForkEdit, Interrupted, PartialReply, RunListener
from graphs.concurrent import BackgroundRuns
from graphs.runner import Runner
from tests.support.machine import VIDEO

QUESTION = Question(text="Who opens?", videos=(VIDEO,))
WORDS = PartialReply(round=1, purpose="act", text="a gate")


class Scripted:
    """An runner whose run does what it is told, step by step, when it is let on."""

    def __init__(self, *steps: Callable[[RunListener], None]) -> None:
        self.steps = steps
        self.on, self.here = threading.Semaphore(0), threading.Semaphore(0)
        self.asked: list[object] = []

    def begin(
        self, question: Question, tell: RunListener, *, strategy: str | None = None
    ) -> tuple[Any, Any]:
        self.asked.append(question)
        return {"trajectory": "aa11"}, tell

    def begin_fork(
        self, name: str, number: int, edit: ForkEdit, tell: RunListener
    ) -> tuple[Any, Any]:
        self.asked.append((name, number, edit))
        return {"trajectory": "bb22"}, tell

    def run(self, _: object, tell: RunListener) -> None:
        for step in self.steps:
            self.here.release()
            assert self.on.acquire(timeout=10)
            step(tell)
        self.here.release()

    def resume(self, trajectory: str, tell: RunListener) -> None:
        self.asked.append(trajectory)
        self.run(None, tell)

    def let_on(self) -> None:
        """Lets it take a step, once it is there; returns when it is before the next."""
        assert self.here.acquire(timeout=10)
        self.on.release()


def say(tell: RunListener) -> None:
    tell(WORDS)


def do(tell: RunListener) -> None:
    tell(Interrupted(round=1))


def fail(error: BaseException) -> Callable[[RunListener], None]:
    def step(_: RunListener) -> None:
        raise error

    return step


@pytest.fixture
def runs() -> Iterator[BackgroundRuns]:
    found = BackgroundRuns()
    yield found
    for name in ("aa11", "bb22"):
        found.wait(name, 10)
        assert not found.running(name)


def ask(runs: BackgroundRuns, *steps: Callable[[RunListener], None]) -> Scripted:
    runner = Scripted(*steps)
    assert runs.ask(cast(Runner, runner), QUESTION) == "aa11"
    return runner


def ended(runs: BackgroundRuns) -> str:
    """Why it ended without an answer."""
    runs.wait("aa11", 10)
    assert not runs.running("aa11")
    assert runs.said("aa11") is None
    return runs.error("aa11")


def test_it_runs_until_it_ends_whether_or_not_anybody_looks(runs: BackgroundRuns) -> None:
    runner = ask(runs, do)
    assert runs.running("aa11")
    runner.let_on()
    assert ended(runs) == ""
    assert runner.asked == [QUESTION]


def test_words_are_shown_while_they_come_and_not_after(runs: BackgroundRuns) -> None:
    runner = ask(runs, say, do, do)
    runner.let_on()
    runner.here.acquire(timeout=10)
    assert runs.said("aa11") == WORDS
    runner.on.release()
    runner.here.acquire(timeout=10)
    assert runs.said("aa11") is None
    runner.on.release()
    assert ended(runs) == ""


def test_one_that_is_stopped_ends_at_its_next_word_and_is_no_failure(runs: BackgroundRuns) -> None:
    steps: list[str] = []
    runner = ask(runs, say, say, lambda _: steps.append("too far"))
    runner.let_on()
    runner.here.acquire(timeout=10)
    runs.stop("aa11")
    runner.on.release()
    assert ended(runs) == ""
    assert steps == []


@pytest.mark.parametrize(
    "error", [ModelError("the model did not answer"), InputError("no such video")]
)
def test_a_failure_is_reported_in_its_own_words(runs: BackgroundRuns, error: HomerError) -> None:
    ask(runs, fail(error)).let_on()
    assert ended(runs) == str(error)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_is_reported_by_its_class_and_not_swallowed(runs: BackgroundRuns) -> None:
    ask(runs, fail(ZeroDivisionError("secret"))).let_on()
    assert ended(runs) == "the run ended without an answer: ZeroDivisionError"


def test_a_question_that_cannot_be_begun_is_told_at_once(runs: BackgroundRuns) -> None:
    class Refusing(Scripted):
        def begin(
            self, question: Question, tell: RunListener, *, strategy: str | None = None
        ) -> tuple[Any, Any]:
            raise InputError("no such video")

    with pytest.raises(InputError):
        runs.ask(cast(Runner, Refusing()), QUESTION)
    assert not runs.running("aa11")


def test_a_fork_goes_by_its_own_name(runs: BackgroundRuns) -> None:
    runner, edit = Scripted(do), ForkEdit(profile="small")
    assert runs.fork(cast(Runner, runner), "aa11", 2, edit) == "bb22"
    assert (runs.running("bb22"), runs.running("aa11")) == (True, False)
    runner.let_on()
    assert runner.asked == [("aa11", 2, edit)]


def test_a_broken_one_goes_on_under_its_name_past_its_failure(runs: BackgroundRuns) -> None:
    ask(runs, fail(ModelError("the model did not answer"))).let_on()
    assert ended(runs)
    again = Scripted(do)
    assert runs.resume(cast(Runner, again), "aa11") == "aa11"
    assert runs.running("aa11")
    assert runs.error("aa11") == ""
    again.let_on()
    assert again.asked == ["aa11"]


def test_of_what_is_not_here_nothing_is_known_and_nothing_breaks(runs: BackgroundRuns) -> None:
    runs.stop("cc33")
    runs.wait("cc33")
    assert not runs.running("cc33")
    assert (runs.said("cc33"), runs.error("cc33")) == (None, "")
