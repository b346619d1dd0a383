"""What the benchmarks say of their numbers, of libraries that grow and of perception."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import benchmarks.__main__
from benchmarks.__main__ import NAMES, document
from benchmarks.growing import Scene, Use, figures, main, needs
from benchmarks.lines import Line, Taken, costs, exponent, faster
from benchmarks.perception import __main__ as command
from benchmarks.perception.faces import FaceReport
from benchmarks.perception.joins import JoinReport
from benchmarks.perception.metrics import Cuts, Pairs, SpeakerErrors, WordErrors
from benchmarks.perception.report import PACKAGED, PerceptionReport
from benchmarks.perception.shots import ShotReport
from benchmarks.perception.sounds import SoundReport
from benchmarks.perception.voices import VoiceReport, WordReport
from domain.errors import InputError
from store.home import Home

USE = Use(clip=(1_000, 100), question=(10_000, 1_000), price=(1.0, 10.0))


HELPERS = {"__main__", "grown", "growing", "lines", "hardware", "reader_films", "search_process"}
ALONE = {
    *("failing_servers", "reader", "chapters", "stream", "partitions", "options", "model_use"),
    *("small_model", "seeing"),
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
    costs = {10.0**n: 3.0 * 10.0 ** (n * 0.5) for n in range(2, 5)}
    one = Taken((1.0,))
    grown = [Line("a search", Taken((ms,)), one, "numpy", ms, size=n) for n, ms in costs.items()]
    assert exponent(grown) == pytest.approx(0.5)
    assert exponent(grown[:2]) is None


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


def test_a_day_is_worked_out() -> None:
    rows = json.loads(document(RUN))["lines"]
    output = dict(needs(Scene("a day", hours=24, incoming=10), figures(rows), USE))
    assert (output["memories"], output["memories on disk"]) == ("23,040", "0.0 GB")
    assert output["a search over one video"] == "20 ms"
    assert output["a search over 10,000 lines"] == "50 ms"
    assert output["the first search of a process"] == "90 ms"
    assert "building the search index" not in output
    assert (output["machines that watch"], output["model, all clips once"]) == ("3", "6 USD")
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


def faces(right: int = 9, twice: int = 0, engine: str = PACKAGED) -> FaceReport:
    """``right`` of ten pairs."""
    return FaceReport("marked", engine, 20, 3, 3, Pairs(right, 10, 10), 1, twice, 8, 2)


def voices(speakers: int = 2, missed: int = 100) -> VoiceReport:
    errors = SpeakerErrors(1000, missed, 20, 30)
    return VoiceReport("sample.flac", speakers, 2, errors, SpeakerErrors(1000, 400))


SHOT = ShotReport("joined", Cuts(4, 5, 4), Cuts(4, 4, 4))
JOIN = JoinReport("company", ("Ann", "Bob"), ("Ann",), 1)
WORDS = WordReport("talk.mp4", WordErrors(50, 5), WordErrors(50, 4))
SOUNDS = SoundReport("bells, in pauses", 10, 6, 8, 7, 300.0, 2.0)
PARTS = (faces(),), (voices(),), (WORDS,), (SHOT,), (JOIN,)
WHOLE = PerceptionReport(*PARTS, absent=("gone\x07.mp4",), sounds=(SOUNDS,))


def met(report: PerceptionReport) -> dict[str, bool]:
    return {bar.name: bar.met for bar in report.bars}


@pytest.mark.parametrize(("right", "reached"), [(10, True), (9, True), (8, False)])
def test_faces_must_be_told_apart_nine_times_in_ten(right: int, reached: bool) -> None:
    found = met(PerceptionReport(faces=(faces(right),)))
    assert found["face identities, marked: pairwise F1"] is reached


def test_only_the_engine_that_comes_with_the_profile_must_reach_them() -> None:
    assert PerceptionReport(faces=(faces(0, 5, "yunet_sface"),)).bars == []


@pytest.mark.parametrize(("missed", "reached"), [(0, True), (200, True), (201, False)])
def test_pairs_are_told_wrongly_a_quarter_of_the_time_at_most(missed: int, reached: bool) -> None:
    (bar,) = PerceptionReport(voices=(voices(missed=missed), voices(speakers=5, missed=999))).bars
    assert bar.met is reached


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch, home: Home) -> list[Any]:
    """The report that the next evaluation has, at the front."""
    reports: list[Any] = [WHOLE]

    def evaluate(folder: Path, *_: object) -> PerceptionReport:
        if isinstance(reports[0], Exception):
            raise reports[0]
        found: PerceptionReport = reports[0]
        return found

    monkeypatch.setattr(command, "evaluate_perception", evaluate)
    return reports


def homer(*words: str, code: int) -> Result:
    done = CliRunner().invoke(command.app, [*words, "media"])
    assert done.exit_code == code, done.output
    return done


def line(text: str, name: str) -> str:
    """The words of the first line that begins with ``name``, a space between each."""
    return next(" ".join(one.split()) for one in text.splitlines() if one.startswith(name))


def test_everything_that_was_measured_has_its_table(reported: list[Any]) -> None:
    shown = homer(code=1).stdout
    assert line(shown, "marked") == "marked insightface 90.0 90.0 90.0 3 3 20 1 2 of 8 0"
    assert line(shown, "sample.flac") == "sample.flac 2 2 15.0 10.0 2.0 3.0 40.0"
    assert line(shown, "all with") == "all with two speakers 15.0 10.0 2.0 3.0"
    assert line(shown, "company") == "company 2 1 1"
    assert line(shown, "talk.mp4") == "talk.mp4 50 10.0 8.0"
    assert line(shown, "bells") == "bells, in pauses 10 60.0 8 87.5 150"
    assert line(shown, "joined") == "joined 4 88.9 5 4 100.0 4 4"
    assert "not there, not judged: gone .mp4" in shown


def test_whole_report_is_printed_or_written_as_json(reported: list[Any], tmp_path: Path) -> None:
    printed = json.loads(homer("--json", code=1).stdout)
    homer("--out", str(tmp_path / "report.json"), code=1)
    assert json.loads((tmp_path / "report.json").read_text()) == printed
    assert printed["faces"][0]["pairs"] == {"right": 9, "joined": 10, "same": 10}
    assert [bar["met"] for bar in printed["bars"]] == [True, True, True, False, False, False]


def test_where_nothing_can_be_judged_it_says_what_to_name(reported: list[Any]) -> None:
    reported[0] = InputError("media: none of the clips that are judged is there")
    assert "none of the clips" in homer(code=2).stderr
