"""The log tells what was done with ids and numbers, keeps content out, and stops no work."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from domain.errors import DatabaseError, InputError, ModelError
from store.home import Home
from telemetry import logs, tracing
from telemetry.logs import LEVEL, LIMIT, log_error, log_path, set_up_logging
from telemetry.tracing import Work, bind_ids

VIDEO = "0123456789abcdef"
SECRET = "the mayor's secret"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    for name in ("HOMER_LOG", "HOMER_LOG_LEVEL", "HOMER_LOG_TO"):
        monkeypatch.delenv(name, raising=False)
    found = logging.getLogger("homer")
    handlers, level = found.handlers[:], found.level
    yield Home(tmp_path / "home")
    found.handlers[:], found.level = handlers, level
    logging.getLogger("homer").manager._clear_cache()  # type: ignore[attr-defined]


def records(home: Home) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_path(home).read_text().splitlines()]


def fail(error: Exception) -> Exception:
    try:
        try:
            raise OSError(28, SECRET)
        except OSError as cause:
            raise error from cause
    except type(error) as caught:
        return caught


def test_a_record_has_its_ids_and_how_long_it_took(home: Home) -> None:
    set_up_logging(home)
    with (
        bind_ids(flow_run="0b1f3d52-6a8a-4f6c-9d35-8f0b3f6c2f11"),
        tracing.span(Work.FLOW, "ingest", video=VIDEO) as flow,
        tracing.span(Work.CLIP, clip=4),
    ):
        flow.fields["clips"] = 9
    clip, flow_record = records(home)
    assert clip["event"] == "clip done"
    assert (clip["video"], clip["clip"], clip["flow_run"][:4]) == (VIDEO, 4, "0b1f")
    assert (flow_record["event"], flow_record["clips"]) == ("ingest done", 9)
    assert (flow_record["level"], flow_record["pid"]) == ("info", os.getpid())
    assert flow_record["ms"] >= clip["ms"] >= 0
    assert "clip" not in flow_record


def test_nothing_is_made_before_there_is_something_to_say(home: Home) -> None:
    set_up_logging(home)
    with tracing.span(Work.SEARCH):
        pass
    assert not home.root.exists()


def test_smaller_steps_are_reported_at_debug_only(home: Home) -> None:
    set_up_logging(home, "debug")
    with tracing.span(Work.SEARCH, "search event", mode="event"):
        pass
    assert [r["event"] for r in records(home)] == ["search event done"]


def test_an_error_has_the_way_to_it_but_not_its_words(home: Home) -> None:
    set_up_logging(home)
    path = log_error(fail(ModelError(SECRET)))
    assert path == log_path(home)
    assert SECRET not in path.read_text()
    (output,) = records(home)
    assert (output["error"], output["cause"], output["errno"]) == ("ModelError", "OSError", 28)
    ways = [step for step in output["trace"] if "test_logs.py" in step]
    assert ways
    assert all(step.endswith(" fail") for step in ways)
    assert all(step.startswith("tests/unit/") for step in ways)
    assert "OSError" in output["trace"]


def test_an_error_that_is_its_own_cause_is_reported_once(home: Home) -> None:
    set_up_logging(home)
    first, second = ModelError("a"), ValueError("b")
    first.__cause__, second.__context__ = first, first
    first.__context__ = second
    log_error(first)
    log_error(second)
    found = [output["trace"] for output in records(home)]
    assert found == [["ModelError"], ["ModelError", "ValueError"]]


def test_at_debug_an_error_s_words_are_reported_too(home: Home) -> None:
    set_up_logging(home, "debug")
    log_error(fail(ModelError(SECRET)))
    assert records(home)[0]["said"] == SECRET


def test_a_question_that_failed_is_a_warning_with_the_way_to_it(home: Home) -> None:
    set_up_logging(home)
    with pytest.raises(ModelError), tracing.span(Work.QUESTION, trajectory="fedcba9876543210"):
        raise ModelError(SECRET)
    (output,) = records(home)
    assert (output["level"], output["event"]) == ("warning", "question failed")
    assert output["trajectory"] == "fedcba9876543210"
    assert SECRET not in log_path(home).read_text()


def test_what_was_stopped_did_not_fail(home: Home) -> None:
    set_up_logging(home)
    with pytest.raises(KeyboardInterrupt), tracing.span(Work.FLOW, "ingest"):
        raise KeyboardInterrupt
    assert [(r["level"], r["event"]) for r in records(home)] == [("info", "ingest stopped")]


def test_text_is_a_line_a_person_reads(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_LOG", "text")
    set_up_logging(home)
    with tracing.span(Work.FLOW, "ingest", video=VIDEO):
        pass
    assert f' info ingest done: video="{VIDEO}" ms=' in log_path(home).read_text()


def test_the_log_may_go_where_a_container_s_log_goes(
    home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMER_LOG_TO", "stderr")
    set_up_logging(home)
    with tracing.span(Work.FLOW, "ingest"):
        pass
    assert log_error(ModelError("x")) is None
    assert json.loads(capfd.readouterr().err.splitlines()[0])["event"] == "ingest done"
    assert not home.root.exists()


@pytest.mark.parametrize("name", ["HOMER_LOG", "HOMER_LOG_LEVEL", "HOMER_LOG_TO"])
def test_no_such_setting_is_said(home: Home, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "loudly")
    with pytest.raises(InputError, match=name):
        set_up_logging(home)


def test_a_log_that_cannot_be_written_stops_nothing(home: Home) -> None:
    home.root.parent.mkdir(exist_ok=True)
    home.root.write_text("a file is in the way")
    set_up_logging(home)
    with tracing.span(Work.FLOW, "ingest"):
        pass
    assert log_error(ModelError("x")) is None


def test_a_full_log_is_put_aside_a_few_times(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LIMIT", 2_000)
    set_up_logging(home)
    for number in range(120):
        with tracing.span(Work.CLIP, clip=number):
            pass
    files = sorted(path.name for path in home.logs.iterdir())
    assert files == ["homer.log", "homer.log.1", "homer.log.2", "homer.log.3"]
    lines = [line for name in reversed(files) for line in (home.logs / name).open()]
    clips = [json.loads(line)["clip"] for line in lines]
    assert clips == list(range(120))[-len(clips) :]
    assert all(path.stat().st_size < 2_300 for path in home.logs.iterdir())
    assert LIMIT > 1_000_000


def test_several_writers_lose_no_line_at_turn(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LIMIT", 20_000)
    set_up_logging(home)

    def write(first: int) -> None:
        # As another process would: with a handler, and so a lock, of its own.
        handler = logs.LogFile(log_path(home))
        handler.setFormatter(logs.RecordFormatter("json"))
        for number in range(first, first + 100):
            record = logging.LogRecord("homer", logging.INFO, "", 0, "x", None, None)
            record.homer = {"number": number}
            handler.emit(record)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line for path in home.logs.iterdir() for line in path.open()]
    assert sorted(json.loads(line)["number"] for line in lines) == list(range(400))


@given(st.text(), st.sampled_from(["json", "text"]))
def test_a_record_is_one_line_whatever_is_in_it(words: str, form: str) -> None:
    record = logging.LogRecord("homer", logging.INFO, "", 0, "event", None, None)
    record.homer = {"said": words}
    line = logs.RecordFormatter(form).format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()


def test_failures_name_the_log(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cli.main import app

    def gone(*_: object) -> None:
        raise DatabaseError(f"the database of {SECRET} is gone")

    monkeypatch.setenv("HOMER_HOME", str(home.root))
    monkeypatch.setattr("library.upkeep.check_setup", gone)
    result = CliRunner().invoke(app, ["doctor"])
    output = f"homer: the database of {SECRET} is gone (log: {log_path(home)})\n"
    assert (result.exit_code, result.stderr) == (3, output)
    (record,) = records(home)
    assert record["error"] == "DatabaseError"
    assert any(step.startswith("library/upkeep.py:") for step in record["trace"])
    assert SECRET not in log_path(home).read_text()
    wrong = CliRunner().invoke(app, ["--log-level", "loudly", "doctor"])
    assert (wrong.exit_code, LEVEL in wrong.stderr) == (2, True)


def test_what_was_typed_wrong_needs_no_log(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.main import app

    monkeypatch.setenv("HOMER_HOME", str(home.root))
    result = CliRunner().invoke(app, ["ingest", "no-such-file.mp4", "--direct"])
    assert result.exit_code == 2
    assert "log:" not in result.stderr
    assert not log_path(home).exists()
