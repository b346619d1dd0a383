"""A trajectory that is run again from its record: the same events, and nobody is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Question
from domain.errors import InputError, ModelError, NotFound
from domain.settings import AskSettings, Settings
from domain.trajectory import (
    Acted,
    Ended,
    EvidenceRetrieved,
    ModelCalled,
    Planned,
    Prompted,
    TimeUp,
)
from graphs.ask_result import AskResult
from graphs.machine import HOMER
from graphs.replay import Replayed, replay
from models.profile import Profile
from store.database import Store
from store.queries.trajectories import add_trajectory, events_of, list_trajectories, marks_of
from tests.support.asking import PARTY, WordToolbox, latest
from tests.support.full_suite import ends, sample
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of, texts_of
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.remembered import Event, Said, add_event_graph, watch
from tests.support.remembered import name as rename
from tests.support.runs import ask

GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))
QUESTIONS = (
    GATE,
    Question(text="What does Bob play?", videos=(PARTY,)),
    Question(text="Why did the party move inside?", videos=(PARTY,)),
    Question(text="Who repairs the submarine?", videos=(PARTY,)),
    Question(text="What happens at the party?", videos=(PARTY,), as_of_ms=60_000),
    Question(text="Who sings and who plays the piano?", videos=(PARTY,)),
)


ROWS = """
SELECT (SELECT count(*) FROM trajectories), (SELECT count(*) FROM trajectory_events),
       (SELECT count(*) FROM model_calls), (SELECT count(*) FROM messages),
       (SELECT count(*) FROM questions)"""


def kept(store: Store) -> Any:
    """How many rows are in each table that a replay could leave a trace in."""
    with psycopg.connect(store.psycopg_url) as connection:
        return connection.execute(ROWS).fetchone()


def local(store: Store, question: Question) -> str:
    return ask(store, WordToolbox(), question).trajectory_id


def llm(store: Store, script: Callable[[dict[str, Any]], Any] = obedient, **changes: Any) -> str:
    """A question to a language model that is gone afterwards: nobody could be asked again."""
    with OpenAIServer(script) as server:
        toolbox = LlmToolbox(server)
        toolbox.profile = Profile.model_validate(toolbox.profile.model_dump() | changes)
        try:
            return ask(store, toolbox, GATE).trajectory_id
        except ModelError:
            return latest(store).id


def same(made: Replayed) -> bool:
    assert made.divergence is None, made.divergence
    return made.whole


@pytest.mark.parametrize("question", ends(QUESTIONS), ids=lambda q: q.text)
def test_an_answer_by_rules_is_replayed_without_any_model(party: Store, question: Question) -> None:
    trajectory, before = local(party, question), kept(party)
    made = replay(party, trajectory[:7])
    assert same(made)
    assert (made.trajectory, made.calls, made.ended) == (trajectory, 0, True)
    assert made.searches > 0
    with party.begin() as session:
        assert made.events == len(events_of(session, trajectory))
    assert kept(party) == before


def test_an_answer_by_a_language_model_is_replayed_with_zero_calls(party: Store) -> None:
    trajectory = llm(party)
    before = kept(party)
    made = replay(party, trajectory)
    assert same(made)
    assert made.calls > 3
    assert kept(party) == before


def test_a_question_to_a_small_context_is_shown_less_and_replayed(party: Store) -> None:
    sizes = list[int]()

    def sized(request: dict[str, Any]) -> Any:
        sizes.append(sum(len(one["content"].encode()) for one in request["messages"]))
        assert "Who opens the gate?" in "".join(one["content"] for one in request["messages"])
        return obedient(request)

    def asked(**spec: Any) -> tuple[str, int]:
        sizes.clear()
        with OpenAIServer(sized) as server:
            trajectory = ask(party, LlmToolbox(server, **spec), GATE).trajectory_id
        return trajectory, max(sizes)

    _, most = asked()
    trajectory, less = asked(context_tokens=2_200, max_tokens=1_000)
    assert less < 3 * 1_200 < most
    made = replay(party, trajectory)
    assert same(made)
    assert made.calls > 3


REPLIES = {
    "chat": "Sorry, I am only a chatbot.",
    "nonsense": {"nonsense": 1},
    "down": Answer({"error": {"message": "no"}}, status=500),
    "expensive": Answer({"resolved": []}, tokens=(12_000, 1_000)),
}
PURPOSES = ("plan", "act", "assess", "conclude")


@pytest.mark.parametrize(
    ("reply", "purpose"), sample(zip(REPLIES, PURPOSES, strict=True), product(REPLIES, PURPOSES))
)
def test_what_went_wrong_goes_wrong_again(party: Store, reply: str, purpose: str) -> None:
    made = llm(party, lambda r: REPLIES[reply] if purpose_of(r) == purpose else obedient(r))
    assert same(replay(party, made))


def test_time_that_ran_out_runs_out_at_the_same_place(party: Store) -> None:
    def slow(request: dict[str, Any]) -> Any:
        late = purpose_of(request) == "assess"
        return Answer(obedient(request), delay_s=30.0 if late else 0.0)

    trajectory = llm(party, slow, settings=Settings(ask=AskSettings(seconds=3.0)))
    with party.begin() as session:
        events = events_of(session, trajectory)
    assert [e for e in events if isinstance(e, TimeUp)]
    assert isinstance(events[-1], Ended)
    assert same(replay(party, trajectory))


def test_a_name_given_afterwards_does_not_change_the_past(party: Store) -> None:
    trajectory = llm(party)
    rename(party, PARTY, 3, "Zoe", "<face_3>")
    assert same(replay(party, trajectory))


def test_an_answer_by_rules_does_not_depend_on_the_memory_any_more(party: Store) -> None:
    trajectory = local(party, GATE)
    with psycopg.connect(party.psycopg_url) as connection:
        connection.execute("UPDATE memories SET text = 'nothing at all'")
    assert same(replay(party, trajectory))


def change(store: Store, trajectory: str, kind: str, path: str, value: str) -> int:
    """Falsify the first event of a kind; returns its number."""
    query = """
        UPDATE trajectory_events SET payload = jsonb_set(payload, %s, %s)
        WHERE trajectory_id = %s AND seq = (
            SELECT min(seq) FROM trajectory_events WHERE trajectory_id = %s AND kind = %s)
        RETURNING seq"""
    with psycopg.connect(store.psycopg_url) as connection:
        row = connection.execute(query, (path, value, trajectory, trajectory, kind)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.usefixtures("tampered")
def test_a_record_that_was_changed_is_reported_where_it_differs(party: Store) -> None:
    trajectory = local(party, GATE)
    at = change(party, trajectory, "plan", "{subtasks,0,text}", '"something else"')
    parted = replay(party, trajectory).divergence
    assert parted is not None
    assert parted.at == at
    assert isinstance(parted.recorded, Planned)
    assert isinstance(parted.replayed, Planned)
    assert parted.recorded.subtasks[0].text == "something else"
    assert parted.replayed.subtasks[0].text != "something else"


@pytest.mark.usefixtures("tampered")
def test_a_search_that_is_not_on_record_is_not_made(party: Store) -> None:
    trajectory = local(party, GATE)
    at = change(party, trajectory, "retrieve", "{query}", '"another query"')
    parted = replay(party, trajectory).divergence
    assert parted is not None
    assert parted.at == at
    assert isinstance(parted.recorded, EvidenceRetrieved)
    assert parted.replayed is None
    assert "the record has no search" in parted.why


@pytest.mark.usefixtures("tampered")
@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("{version}", "99", "version 99 of the strategy homer, this is version 2"),
        ("{machine}", '"gone"', "the strategy gone, there is no such strategy here"),
    ],
)
def test_a_record_of_another_version_is_said_at_once_to_be_none_to_run_again(
    party: Store, monkeypatch: pytest.MonkeyPatch, path: str, value: str, told: str
) -> None:
    trajectory = local(party, GATE)
    change(party, trajectory, "question", path, value)
    monkeypatch.setenv("HOMER_DATABASE_URL", party.url)
    shown = CliRunner().invoke(app, ["replay", trajectory])
    assert (shown.exit_code, shown.stdout) == (6, "")
    (line,) = shown.stderr.splitlines()
    assert told in line
    assert "ask the question anew" in line


@pytest.mark.usefixtures("tampered")
def test_another_prompt_is_another_request(party: Store) -> None:
    trajectory = llm(party)
    with psycopg.connect(party.psycopg_url) as connection:
        connection.execute("UPDATE model_calls SET request_hash = 'x' WHERE purpose = 'assess'")
    made = replay(party, trajectory)
    assert made.divergence is not None
    assert "the record has no call for 'assess'" in made.divergence.why
    assert made.calls == 2
    assert not made.whole


def test_a_question_that_was_broken_off_is_replayed_up_to_there(party: Store) -> None:
    trajectory = llm(party, lambda r: Answer("", 500) if purpose_of(r) == "assess" else obedient(r))
    made = replay(party, trajectory)
    assert same(made)
    assert (made.ended, made.calls) == (False, 3)
    with party.begin() as session:
        events = events_of(session, trajectory)
    assert made.events == len(events) - 1
    assert [e for e in events if isinstance(e, Acted)]


@pytest.mark.usefixtures("tampered")
def test_what_is_not_on_record_cannot_be_replayed(party: Store) -> None:
    with pytest.raises(NotFound, match="no trajectory goes by"):
        replay(party, "ffff")
    with party.begin() as session:
        assert list_trajectories(session) == []
    trajectory = local(party, GATE)
    with party.begin() as session:
        add_trajectory(session, "empty", GATE, list_trajectories(session)[0].view, "homer", "local")
    with pytest.raises(InputError, match="before anything was recorded"):
        replay(party, "empty")
    change(party, trajectory, "question", "{reasoner}", '"oracle"')
    with pytest.raises(InputError, match="oracle"):
        replay(party, trajectory)


# What a run leaves on record: every prompt, when and in which step, and no message twice.


QUESTION = Question(text="What happens at the long party?", videos=(PARTY,))
STUBBORN = Settings(ask=AskSettings(saturated_after=30, empty_rounds=30, lock_on_rounds=30))


def never_content(request: dict[str, Any]) -> Any:
    """Plans five subtasks, words every search anew and is never satisfied."""
    purpose = purpose_of(request)
    if purpose == "plan":
        return {"subtasks": [{"text": f"fact number {i} about the party"} for i in range(5)]}
    if purpose == "assess":
        return {"resolved": [], "reopened": []}
    if purpose == "act":
        at = len(texts_of(request)) // 2
        query = f"somebody says word{at}a word{at}b word{at}c"
        return {"action": "search", "mode": "event" if at < 2 else "video", "query": query}
    return obedient(request)


@pytest.fixture
def asked(store: Store) -> AskResult:
    """Ten rounds over a video of forty clips that hold much to say."""
    output = "word{0}a word{0}b word{0}c happens, and guest {1} says so in the long garden"
    clips = [[Said(output.format(c, i) * 2, i) for i in range(8)] for c in range(40)]
    watch(store, PARTY, clips)
    events = [
        Event(
            i,
            f"event {i}",
            f"word{i}a happens in part {i} " * 10,
            tuple(range(4 * i, 4 * i + 4)),
            39,
        )
        for i in range(10)
    ]
    add_event_graph(store, PARTY, events, [])
    with OpenAIServer(never_content) as server:
        toolbox = LlmToolbox(server)
        toolbox.profile = toolbox.profile.model_copy(update={"settings": STUBBORN})
        assert isinstance(toolbox.profile, Profile)
        return ask(store, toolbox, QUESTION)


SIZES = """
WITH told AS (SELECT messages, reply FROM model_calls WHERE trajectory_id = %s)
SELECT (SELECT sum(length(content::text)) FROM messages
        WHERE hash IN (SELECT unnest(messages) FROM told)),
       (SELECT sum(length(reply::text)) FROM told),
       (SELECT sum(length(name)) FROM told, unnest(messages) AS name),
       (SELECT sum(length(content::text)) FROM told, unnest(messages) AS name
        JOIN messages ON hash = name)"""


@pytest.mark.full
def test_trajectory_stores_a_fifth_more_than_unique_content(store: Store, asked: AskResult) -> None:
    assert asked.rounds == 10
    with psycopg.connect(store.psycopg_url) as connection:
        sizes = connection.execute(SIZES, (asked.trajectory_id,)).fetchone()
    assert sizes is not None
    pool, replies, names, sent = sizes
    unique = pool + replies
    assert unique + names <= 1.2 * unique
    assert sent > 2.5 * pool


def test_every_call_is_reported_before_it_is_made(store: Store, asked: AskResult) -> None:
    with store.begin() as session:
        output = events_of(session, asked.trajectory_id)
    pairs = [(a, b) for a, b in pairwise(output) if isinstance(a, Prompted)]
    calls = [e for e in output if isinstance(e, ModelCalled)]
    assert len(pairs) == len(calls) > 10
    for prompted, called in pairs:
        assert isinstance(called, ModelCalled)
        assert isinstance(prompted, Prompted)
        assert (prompted.request, prompted.purpose) == (called.request, called.purpose)
        assert prompted.round == called.round


def test_event_has_its_own_time_and_the_step_it_came_from(store: Store, asked: AskResult) -> None:
    with store.begin() as session:
        output = events_of(session, asked.trajectory_id)
        marks = marks_of(session, asked.trajectory_id)
    assert len(marks) == len(output)
    times = [mark.at for mark in marks]
    assert times == sorted(times)
    assert len(set(times)) == len(times)
    assert timedelta(0) <= datetime.now(UTC) - times[-1] < timedelta(hours=1)
    assert marks[0].step == ""
    assert {mark.step for mark in marks[1:]} <= set(HOMER.steps)
    steps: dict[str, str] = {
        event.kind: mark.step for event, mark in zip(output, marks, strict=True)
    }
    expected = {"plan": "plan", "act": "act", "retrieve": "retrieve", "assess": "assess"}
    assert {kind: steps[kind] for kind in expected} == expected
    assert steps["end"] == "finish"
