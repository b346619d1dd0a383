"""A few things at a time, with results in order, and nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perception.ordered_pool import map_ordered
from tests.support.full_suite import examples


def slowly(item: int, _stopped: Callable[[], bool]) -> int:
    time.sleep(0.001 * (item % 3))
    return item


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 4))
@settings(max_examples=examples(10, 30), deadline=None)
def test_results_come_in_the_order_of_items(items: list[int], lanes: int) -> None:
    assert list(map_ordered(slowly, items, lanes)) == items


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_no_more_is_begun_than_there_are_lanes_until_a_result_is_taken(lanes: int) -> None:
    begun: list[int] = []

    def work(item: int, _stopped: Callable[[], bool]) -> int:
        begun.append(item)
        return item

    with closing(map_ordered(work, range(10), lanes)) as results:
        for taken in range(5):
            assert next(results) == taken
            time.sleep(0.01)
            assert max(begun) < taken + lanes


def test_what_is_under_way_is_told_to_stop_and_waited_for() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(item: int, stopped: Callable[[], bool]) -> int:
        if item:
            begun.set()
        while item and not stopped():
            time.sleep(0.001)
        if item:
            ended.set()
        return item

    before = set(threading.enumerate())
    results = map_ordered(work, range(3), 2)
    assert next(results) == 0
    assert begun.wait(10)
    results.close()
    assert ended.is_set()
    assert set(threading.enumerate()) <= before


def test_no_thread_waits_for_whoever_has_the_last_result() -> None:
    before = set(threading.enumerate())
    results = map_ordered(slowly, range(3), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert set(threading.enumerate()) <= before


def test_an_error_comes_in_its_turn() -> None:
    def work(item: int, _stopped: Callable[[], bool]) -> int:
        if item == 1:
            raise ValueError("broken")
        return item

    results = map_ordered(work, range(3), 3)
    assert next(results) == 0
    with pytest.raises(ValueError, match="broken"):
        next(results)


def test_more_may_be_begun_than_are_worked_on_at_a_time() -> None:
    begun, first_may_end = [], threading.Event()
    all_begun = threading.Event()

    def work(item: int, _stopped: Callable[[], bool]) -> int:
        begun.append(item)
        if len(begun) == 4:
            all_begun.set()
        assert item or first_may_end.wait(10)
        return item

    with closing(map_ordered(work, range(10), 2, 4)) as results:
        taken = threading.Thread(target=lambda: next(results))
        taken.start()
        assert all_begun.wait(10)
        time.sleep(0.01)
        assert sorted(begun) == [0, 1, 2, 3]
        first_may_end.set()
        taken.join()
