"""What the last line of a terminal shows of a reply that is still being written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.answers import print_event, progress_listener
from domain.asking import Subtask
from domain.trajectory import Interrupted, PartialReply, Planned
from library.answers import reply_tail

WORDS = "Ann opens the wooden gate"


def said(text: str) -> PartialReply:
    return PartialReply(round=1, purpose="act", text=text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (WORDS, WORDS),
        (f"first line\n{WORDS}\n\n", WORDS),
        (json.dumps({"reason": "because", "query": WORDS}), WORDS),
        ('{"reason": "because", "query": "Ann opens', "Ann opens"),
        ('{"steps": ["one", "two', "two"),
        ('{"action": {"query": "Ann', "Ann"),
        ("{", ""),
        ("{}", ""),
        ('{"count": 3', ""),
        ("", ""),
    ],
)
def test_it_is_what_comes_at_this_moment(text: str, shown: str) -> None:
    assert reply_tail(said(text), 80) == f"act: {shown}"


def test_what_does_not_fit_loses_its_beginning() -> None:
    assert reply_tail(said(WORDS), 4) == "act: …gate"
    assert reply_tail(said(WORDS), len(WORDS)) == f"act: {WORDS}"


@given(st.text(max_size=60), st.integers(-10, 40))
def test_it_is_one_line_and_never_longer_than_its_room(text: str, room: int) -> None:
    shown = reply_tail(said(text), room).removeprefix("act: ")
    assert len(shown.removeprefix("…")) <= max(0, room)
    assert shown.isprintable()


def test_a_terminal_is_reported_nothing_that_would_move_its_cursor() -> None:
    assert "\x1b" not in reply_tail(said("red \x1b[31mcar\x1b[2J\r"), 80)


def test_events_without_words_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_event(Interrupted())
    assert capsys.readouterr().err == ""
    print_event(Planned(subtasks=(Subtask(id="t1", text="what Ann opens"),)))
    assert capsys.readouterr().err == "plan t1: what Ann opens\n"


def test_without_a_terminal_there_are_lines_and_where_silent_nothing() -> None:
    with progress_listener(silent=True) as nobody:
        assert nobody is None
    with progress_listener() as nobody:
        assert nobody is None
    with progress_listener(verbose=True) as lines:
        assert lines is print_event
