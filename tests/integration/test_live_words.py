"""What the model writes is seen while it writes it, and leaves no other trace than its call."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cli import answers
from domain.asking import Question
from domain.trajectory import Event, PartialReply
from store.database import Store
from store.queries.calls import calls_of
from tests.support.asking import PARTY
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask

GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))


def test_who_listens_changes_neither_the_answer_nor_what_is_recorded(party: Store) -> None:
    events: list[Event] = []
    said: list[PartialReply] = []
    with OpenAIServer(obedient) as server:
        toolbox = LlmToolbox(server)
        seen = ask(party, toolbox, GATE, collect_events(events, said))
        alone = ask(party, toolbox, GATE)
    assert said
    assert seen.answer == alone.answer
    with party.begin() as session:
        one, other = (calls_of(session, asked.trajectory_id) for asked in (seen, alone))
    assert [(c.request_hash, c.reply, c.tokens_out) for c in one] == [
        (c.request_hash, c.reply, c.tokens_out) for c in other
    ]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> tuple[io.StringIO, list[str]]:
    """A terminal: what stays on it, and what its last line shows one after another."""
    screen, shown = io.StringIO(), list[str]()
    monkeypatch.setattr(answers, "is_terminal", lambda: True)
    monkeypatch.setattr(
        "cli.answers.Console",
        lambda **_: Console(file=screen, force_terminal=True, width=width, height=30),
    )
    monkeypatch.setattr(
        "rich.status.Status.update", lambda _self, status, **_: shown.append(str(status))
    )
    return screen, shown


def test_a_terminal_shows_words_then_lines(party: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, shown = terminal(monkeypatch, width=100)
    with OpenAIServer(obedient) as server, answers.progress_listener(verbose=True) as tell:
        ask(party, LlmToolbox(server), GATE, tell)
    assert any(line.startswith("act: ") and len(line) > 5 for line in shown)
    assert all(len(line) <= 100 and line.isprintable() for line in shown)
    assert "plan t1:" in screen.getvalue()
    assert "round 1: t1:" in screen.getvalue()


def test_a_terminal_is_left_with_the_answer_alone_unless_all_is_asked_for(
    party: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, shown = terminal(monkeypatch, width=60)
    with OpenAIServer(obedient) as server, answers.progress_listener() as tell:
        ask(party, LlmToolbox(server), GATE, tell)
    assert any(line.startswith("round 1: t1") for line in shown)
    assert all(len(line) <= 60 for line in shown)
    assert "round 1" not in screen.getvalue()


def test_json_wants_no_lines_and_a_log_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    with answers.progress_listener(silent=True) as tell:
        assert tell is None
    with answers.progress_listener(verbose=True) as tell:
        assert tell is not None
        tell(PartialReply(round=1, purpose="act", text='{"query": "the gate'))
    assert capsys.readouterr().err == ""
