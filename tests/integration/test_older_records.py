"""A trajectory of an older machine: it opens as it was, and says that it cannot be run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.errors import MachineChanged
from domain.trajectory import EVENT, MACHINE_VERSION, Ended, Event, QuestionAsked
from graphs.ask import ask
from graphs.replay import replay
from store.database import Store
from store.queries.trajectories import add_trajectory, append_events, end_trajectory, events_of
from tests.integration.test_replay import GATE
from tests.support.asking import WordToolbox, remember_party
from views.comparison import compare_trajectories
from views.rounds import inspect_trajectory
from views.trajectory import load_history

RECORD = Path(__file__).parents[1] / "support" / "records" / "version_1.jsonl"
OLD = "00000000000000aa"


def recorded() -> list[Event]:
    """What a machine of version 1 recorded of a question with options, concluding by a ranking."""
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return [EVENT.validate_python(json.loads(line)) for line in lines]


def keep(store: Store, name: str, events: list[Event]) -> str:
    """Put a record into a library, as its machine did."""
    first, last = events[0], events[-1]
    assert isinstance(first, QuestionAsked)
    assert isinstance(last, Ended)
    assert last.answer is not None
    with store.begin() as session:
        add_trajectory(session, name, first.question, first.view, "homer", "local")
        cursor: Any = session.connection().connection.cursor()
        append_events(cursor, name, 0, events)
        end_trajectory(session, name, "done", last.answer, 0, 1.0)
    return name


@pytest.fixture
def party(store: Store) -> Store:
    remember_party(store)
    return store


@pytest.fixture
def old(party: Store) -> str:
    return keep(party, OLD, recorded())


def test_it_opens_and_every_search_is_shown_with_its_own_query(party: Store, old: str) -> None:
    history = inspect_trajectory(party, old).history
    assert history.answer is not None
    assert history.answer.option == "B"
    last = history.rounds[-1]
    assert last.found is not None
    assert last.action is not None
    assert last.found.query == last.action.query
    assert [search.query for search in last.later] == [GATE.text]


def test_a_comparison_tells_what_was_done_from_what_concluded(party: Store, old: str) -> None:
    events = recorded()
    at = max(n for n, event in enumerate(events) if event.kind == "retrieve")
    events[at] = events[at].model_copy(update={"evidence": ()})
    other = keep(party, "00000000000000bb", events)
    found = compare_trajectories(load_history(party, old), load_history(party, other))
    assert found.action is None
    assert found.evidence is not None


def test_running_it_again_says_at_once_that_the_machine_changed(party: Store, old: str) -> None:
    with pytest.raises(
        MachineChanged, match=f"version 1 of the strategy homer, this is version {MACHINE_VERSION}"
    ):
        replay(party, old)


def test_the_command_says_so_in_one_line_with_a_code_of_its_own(
    party: Store, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", party.url)
    shown = CliRunner().invoke(app, ["replay", old])
    assert shown.exit_code == 6
    (line,) = shown.stderr.splitlines()
    assert "ask the question anew" in line
    assert not shown.stdout


def test_what_is_recorded_now_has_this_machines_version_and_runs_again(party: Store) -> None:
    made = ask(party, WordToolbox(), GATE)
    with party.begin() as session:
        first = events_of(session, made.trajectory_id)[0]
    assert isinstance(first, QuestionAsked)
    assert first.version == MACHINE_VERSION
    assert replay(party, made.trajectory_id).whole
