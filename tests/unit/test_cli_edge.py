"""Every error is one line and an exit code; progress and replies still written are a line."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.answers import print_event
from cli.commands import ErrorBoundary
from cli.console import BarMeter, PlainMeter, meter
from domain.asking import Subtask
from domain.errors import (
    Ambiguous,
    BudgetExceeded,
    DatabaseError,
    HomerError,
    InputError,
    MediaError,
    ModelError,
    NotFound,
    ReplayMiss,
    SetupError,
    WeightsMissing,
)
from domain.trajectory import Interrupted, PartialReply, Planned
from library.answers import reply_tail

WORDS = "Ann opens the wooden gate"


def run(work: Callable[[], None], *, debug: bool = False) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that does ``work``."""
    app = typer.Typer(cls=ErrorBoundary, pretty_exceptions_enable=False)

    @app.callback()
    def options(context: typer.Context) -> None:
        context.obj = {"debug": debug}

    app.command("work")(work)
    result = CliRunner().invoke(app, ["work"])
    return result.exit_code, result.stdout, result.stderr


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError, 2),
        (MediaError, 2),
        (NotFound, 2),
        (Ambiguous, 2),
        (SetupError, 3),
        (WeightsMissing, 3),
        (DatabaseError, 3),
        (ModelError, 4),
        (ReplayMiss, 4),
        (BudgetExceeded, 5),
        (HomerError, 1),
    ],
)
def test_each_error_has_its_code_and_one_line(error: type[HomerError], code: int) -> None:
    assert run(raising(error("what to do"))) == (code, "", "homer: what to do\n")


def test_a_fault_of_ours_is_one_line_too_and_says_how_to_see_more() -> None:
    code, out, err = run(raising(ValueError("first\nsecond")))
    assert (code, out) == (1, "")
    assert err == "homer: ValueError: first (homer --debug COMMAND shows where)\n"


def test_a_fault_without_words_is_still_named() -> None:
    assert "KeyError" in run(raising(KeyError()))[2]


@pytest.mark.parametrize("error", [InputError("bad"), ValueError("bad")])
def test_debug_shows_the_way_to_the_error(error: Exception) -> None:
    err = run(raising(error), debug=True)[2]
    assert "Traceback" in err
    assert "in work" in err
    assert err.rstrip().splitlines()[-1].startswith("homer: ")


def test_ctrl_c_says_how_to_go_on() -> None:
    code, _out, err = run(raising(KeyboardInterrupt("the same command goes on")))
    assert (code, err) == (130, "homer: the same command goes on\n")


@pytest.mark.parametrize("code", [0, 4])
def test_a_command_may_choose_its_code(code: int) -> None:
    assert run(raising(typer.Exit(code))) == (code, "", "")


def test_a_wrong_command_line_shows_the_usage() -> None:
    def work() -> None:
        raise typer.BadParameter("give one")

    code, _out, err = run(work)
    assert code == 2
    assert "Usage:" in err
    assert "give one" in err


@pytest.mark.parametrize(
    "error", [NotFound("no video 'a\rb\x07c\x9bd'"), ValueError("a\x07b\x9bc"), OSError(2, "a\x07")]
)
def test_words_from_outside_in_an_error_do_not_steer_a_terminal(error: Exception) -> None:
    _, _, err = run(raising(error))
    assert err.startswith("homer: ")
    assert err.rstrip("\n").isprintable()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the meter reads; tests move it."""
    now = [100.0]
    monkeypatch.setattr("cli.console.time.monotonic", lambda: now[0])
    return now


def test_lines_say_how_far_it_is(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainMeter()
    plain.start("talk", 4)
    for _ in range(4):
        clock[0] += 5
        plain.step()
    found = capsys.readouterr().err.splitlines()
    assert found == (
        ["talk: 1/4, 15 s left", "talk: 2/4, 10 s left", "talk: 3/4, 5 s left", "talk: 4/4"]
    )


def test_quick_steps_share_a_line(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainMeter()
    plain.start("talk", 100)
    for _ in range(100):
        clock[0] += 0.05
        plain.step()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 6
    assert lines[-1] == "talk: 100/100"


def test_words_stand_beside_count(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainMeter()
    plain.start("answers", 2)
    clock[0] += 5
    plain.aside("0.25 dollars\x1b so far")
    plain.step()
    plain.start("others", 1)
    plain.step()
    output = capsys.readouterr().err.splitlines()
    assert output == ["answers: 1/2, 5 s left, 0.25 dollars  so far", "others: 1/1"]


def test_data_goes_to_stdout_and_progress_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    with meter() as bar:
        bar.start("a\x1b[0mb", 1)
        bar.step()
        bar.say("a word")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == ["a [0mb: 1/1", "a word"]


def test_a_terminal_gets_a_bar_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("cli.console.is_terminal", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with meter() as bar:
        assert isinstance(bar, BarMeter)
        bar.start("[red]talk", 2)
        bar.say("[b]a word[/b]")
        bar.aside("[i]3 dollars")
        bar.step(2)
    shown = screen.getvalue()
    assert "[i]3 dollars" in shown
    assert "[red]talk" in shown
    assert "[b]a word[/b]" in shown
    assert "2/2" in shown


def test_words_beside_progress_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console
    from rich.progress import Progress

    out = io.StringIO()
    for one in (PlainMeter(), BarMeter(Progress(console=Console(file=out)))):
        one.say("clip 3 failed: a\x07b\x9bc")
    assert capsys.readouterr().err == "clip 3 failed: a b c\n"
    assert out.getvalue() == "clip 3 failed: a b c\n"


def said(text: str) -> PartialReply:
    return PartialReply(round=1, purpose="act", text=text)


def test_what_does_not_fit_loses_its_beginning() -> None:
    assert reply_tail(said(WORDS), 4) == "act: …gate"
    assert reply_tail(said(WORDS), len(WORDS)) == f"act: {WORDS}"


@given(st.text(max_size=60), st.integers(-10, 40))
def test_it_is_one_line_and_never_longer_than_its_room(text: str, room: int) -> None:
    shown = reply_tail(said(text), room).removeprefix("act: ")
    assert len(shown.removeprefix("…")) <= max(0, room)
    assert shown.isprintable()


def test_events_without_words_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_event(Interrupted())
    assert capsys.readouterr().err == ""
    print_event(Planned(subtasks=(Subtask(id="t1", text="what Ann opens"),)))
    assert capsys.readouterr().err == "plan t1: what Ann opens\n"
