"""What a line of a benchmark says of its numbers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import benchmarks.__main__
from benchmarks.__main__ import NAMES
from benchmarks.lines import Line, Taken, costs, exponent, faster


def _sized(size: float, ms: float) -> Line:
    return Line("a search", Taken((ms,)), Taken((1.0,)), "numpy", ms, size=size)


HELPERS = {"__main__", "grown", "growing", "lines", "hardware", "reader_films", "search_process"}
ALONE = {
    "failing_servers",
    "reader",
    "chapters",
    "stream",
    "partitions",
    "options",
    "model_use",
    "small_model",
    "seeing",
}
"""Run by itself: it prints more than lines have room for."""


def test_one_command_runs_every_benchmark_but_those_that_stand_alone() -> None:
    every = {path.stem for path in Path(benchmarks.__main__.__file__).parent.glob("*.py")}
    assert every - HELPERS - ALONE == set(NAMES)
    assert all(callable(import_module(f"benchmarks.{name}").lines) for name in NAMES)


def test_faster_is_judged_upwards_and_costs_downwards() -> None:
    ours, slow = Taken((1.0, 2.0, 3.0)), Taken((6.0, 6.0, 6.0))
    assert faster("it", ours, slow, "plain", 3.0).reached
    assert not faster("it", ours, slow, "plain", 3.1).reached
    assert costs("it", slow, ours, "plain", 3.0).reached
    assert not costs("it", slow, ours, "plain", 2.9).reached
    assert faster("it", ours, slow, "plain").reached is None


def test_the_spread_is_half_the_distance_of_the_quartiles() -> None:
    assert Taken((8.0, 9.0, 10.0, 11.0, 12.0)).spread == pytest.approx(0.1)
    assert Taken((5.0,)).spread == 0.0


def test_how_cost_grows_is_told_of_three_sizes() -> None:
    grown = [_sized(10.0**n, 3.0 * 10.0 ** (n * 0.5)) for n in range(2, 5)]
    assert exponent(grown) == pytest.approx(0.5)
    assert exponent(grown[:2]) is None
