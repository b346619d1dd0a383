"""The order of an evaluation's steps, whoever runs them, and where it ends early."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from domain.errors import DatabaseError
from domain.evaluation import QuestionPart
from evals.running import run_evaluation
from store.queries.evaluations import Slot
from tests.support.evaluation_rows import slot

VIDEOS = ["ingest v", "ingest w"]


class Work:
    """An evaluation of two videos and two batches, which notes what is done to it."""

    name = "run"
    workspace: Any = SimpleNamespace(store=None)
    plan = SimpleNamespace(videos=[SimpleNamespace(name="v"), SimpleNamespace(name="w")])

    def __init__(self, learning: Sequence[int] = (0,), money: int = 99) -> None:
        self.done: list[str] = []
        self.left = {
            n: [slot(f"{n}{c}", "v", batch=n, part=QuestionPart.TEST) for c in "ab"] for n in (0, 1)
        }
        self.learning, self.money = set(learning), money
        self.lock = threading.Lock()
        self.before: Callable[[Slot], None] = lambda _: None

    def ingest(self, video: str) -> None:
        self.done.append(f"ingest {video}")

    def batches(self) -> Sequence[int]:
        return (0, 1)

    def pending(self, batch: int) -> Sequence[Slot]:
        return list(self.left[batch])

    def answer(self, one: Slot) -> None:
        self.before(one)
        with self.lock:
            if self.over():
                return
            self.money -= 1
            self.left[one.batch].remove(one)
            self.done.append(f"ask {one.question}")

    def over(self) -> bool:
        return self.money <= 0

    def should_learn_from(self, batch: int) -> bool:
        return batch in self.learning

    def learned(self, batch: int) -> None:
        self.learning.remove(batch)
        self.done.append(f"learned {batch}")


@pytest.fixture(autouse=True)
def nothing_to_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.running.learn_in_batches", lambda _: iter(()))


def ran(work: Work, workers: int = 1) -> list[str]:
    run_evaluation(cast(Any, work), workers)
    return work.done


def test_videos_come_first_and_a_batch_is_learned_from_before_the_next() -> None:
    assert ran(Work(learning=(0, 1))) == [
        *VIDEOS,
        *("ask 0a", "ask 0b", "learned 0"),
        *("ask 1a", "ask 1b", "learned 1"),
    ]


def test_without_money_nothing_is_begun() -> None:
    assert ran(Work(money=0)) == []


@pytest.mark.parametrize(
    ("money", "asked"), [(1, ["ask 0a"]), (3, ["ask 0a", "ask 0b", "learned 0", "ask 1a"])]
)
def test_money_that_is_spent_in_the_midst_ends_it_there(money: int, asked: list[str]) -> None:
    assert ran(Work(money=money)) == [*VIDEOS, *asked]


def test_a_batch_that_is_whole_is_learned_from_though_the_money_is_gone() -> None:
    assert ran(Work(money=2)) == [*VIDEOS, "ask 0a", "ask 0b", "learned 0"]


def test_lost_database_ends_the_run_and_asks_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
    work = Work()

    def gone(one: Slot) -> None:
        if one.question == "0a":
            raise DatabaseError("it is gone")

    work.before = gone
    with pytest.raises(DatabaseError, match="it is gone"):
        ran(work)
    assert not any(done.startswith(("learned", "ask 1")) for done in work.done)


def test_database_that_was_away_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.executors.BACK_OFF_S", (0.0, 0.0))
    work, failures = Work(), iter([True, True])

    def away(_: Slot) -> None:
        if next(failures, False):
            raise DatabaseError("for a moment")

    work.before = away
    assert "ask 1b" in ran(work)
