"""Progress as a log reads it, and as a bar."""

from __future__ import annotations

import io

import pytest

from cli.progress import BarMeter, PlainMeter, meter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the meter reads; tests move it."""
    now = [100.0]
    monkeypatch.setattr("cli.progress.time.monotonic", lambda: now[0])
    return now


def test_lines_say_how_far_it_is(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    plain = PlainMeter()
    plain.start("talk", 4)
    for _ in range(4):
        clock[0] += 5
        plain.step()
    assert capsys.readouterr().err.splitlines() == [
        "talk: 1/4, 15 s left",
        "talk: 2/4, 10 s left",
        "talk: 3/4, 5 s left",
        "talk: 4/4",
    ]


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
    monkeypatch.setattr("cli.progress.is_terminal", lambda: True)
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
