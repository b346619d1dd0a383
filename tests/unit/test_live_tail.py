"""What the last line of a terminal shows of a reply that is still being written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.answers import print_event
from domain.asking import Subtask
from domain.trajectory import Interrupted, PartialReply, Planned
from library.answers import reply_tail

WORDS = "Ann opens the wooden gate"


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
