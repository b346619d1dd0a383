"""What the benchmarks say of their numbers, and of libraries that grow."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

import benchmarks.__main__
from benchmarks.__main__ import NAMES, document
from benchmarks.growing import Scene, Use, figures, main, needs
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


DAY = Scene("a day", hours=24, incoming=10)
USE = Use(clip=(1_000, 100), question=(10_000, 1_000), price=(1.0, 10.0))


def _line(what: str, value: float, size: float | None, ratio: float = 1.0) -> Line:
    return Line(what, Taken((value,)), Taken((1.0,)), "it", ratio, size=size)


RUN = [
    _line("memories on disk, indexes and all", 1.0, 1_000),
    _line("memories on disk, indexes and all", 20.0, 10_000),
    _line("event over all videos (p95, bar 25 ms)", 5.0, 1_000),
    _line("event over all videos (p95, bar 25 ms)", 50.0, 10_000),
    _line("event over one video (p95, bar 25 ms)", 20.0, 10_000),
    _line("the first search of a process", 90.0, 10_000),
    _line("watching 720p, speech and all", 10.0, None, ratio=4.0),
]


def _rows(lines: list[Line]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(document(lines))["lines"]
    return found


def test_a_day_is_worked_out() -> None:
    output = dict(needs(DAY, figures(_rows(RUN)), USE))
    assert output["memories"] == "23,040"
    assert output["memories on disk"] == "0.0 GB"
    assert output["a search over one video"] == "20 ms"
    assert output["a search over 10,000 lines"] == "50 ms"
    assert output["the first search of a process"] == "90 ms"
    assert "building the search index" not in output
    assert output["machines that watch"] == "3"
    assert output["model, all clips once"] == "6 USD"
    assert output["model, a thousand questions"] == "20 USD"


def test_a_table_is_printed_or_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run.json"
    monkeypatch.setattr(sys, "argv", ["growing", str(run), "--model", "openai:gpt-5-mini"])
    run.write_text(document(RUN))
    assert main() == 0
    output = capsys.readouterr().out
    assert "| memories | 691,200,000 |" in output
    assert "openai:gpt-5-mini" in output
    run.write_text(document(RUN[:-1]))
    assert main() == 2
    assert "watching 720p" in capsys.readouterr().err
