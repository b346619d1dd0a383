"""In how many threads models run, and what is done in threads beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Barrier, BrokenBarrierError, current_thread

import pytest

from models.onnx import THREADS, allow_threads, map_in_threads, run_both, threads_allowed


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    allow_threads(THREADS)


def test_models_of_a_thread_run_in_as_many_threads_as_it_was_allowed() -> None:
    def threads_seen(_item: int) -> int:
        return threads_allowed()

    assert threads_allowed() == 2
    assert map_in_threads(threads_seen, [1, 2]) == [2, 2]
    allow_threads(1)
    assert threads_allowed() == 1
    # So do those that it has things done in; another one was allowed nothing else.
    assert map_in_threads(threads_seen, [1, 2]) == [1, 1]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(threads_allowed).result() == 2
    allow_threads(64)
    assert threads_allowed() == 2


def test_both_of_two_things_are_done_at_once_with_what_is_under_way() -> None:
    met, about = Barrier(2, timeout=20), ContextVar("about", default="nothing")
    about.set("this clip")

    def work() -> tuple[str, int]:
        met.wait()
        return about.get(), threads_allowed()

    assert run_both(work, work) == (("this clip", 2), ("this clip", 2))
    with pytest.raises(BrokenBarrierError):
        run_both(met.abort, work)


def test_both_are_done_one_after_the_other_where_one_thread_is_allowed() -> None:
    allow_threads(1)
    assert run_both(current_thread, current_thread) == (current_thread(), current_thread())
