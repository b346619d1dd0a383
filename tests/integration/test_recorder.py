"""What a run leaves on record: every prompt, when and in which step, and no message twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from domain.asking import Question
from domain.settings import AskSettings, Settings
from domain.trajectory import ModelCalled, Prompted
from graphs.ask_result import AskResult
from graphs.homer import HOMER
from models.profile import Profile
from store.database import Store
from store.queries.trajectories import events_of, marks_of
from tests.support.asking import PARTY
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of, texts_of
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import Event, Said, add_event_graph, watch
from tests.support.runs import ask

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
