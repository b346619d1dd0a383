"""A report on what is seen and heard: its bars, its tables, and what is said of what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

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
