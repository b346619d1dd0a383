"""A question that is killed goes on from its last finished step and pays for no call twice."""

from __future__ import annotations

import pytest

from domain.asking import Question
from domain.trajectory import canonical
from graphs.ask import ask
from graphs.asker import Asker
from store.database import Store
from store.queries.calls import calls_of
from store.queries.trajectories import events_of, find_trajectory, list_trajectories
from tests.support.asking import PARTY, remember_party
from tests.support.dying import POINTS, killed_asking
from tests.support.obedient import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer

IN_A_CALL = "in a call"
GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))


@pytest.fixture
def party(store: Store) -> Store:
    remember_party(store)
    return store


def told(store: Store, trajectory: str) -> list[str]:
    with store.begin() as session:
        return [canonical(event) for event in events_of(session, trajectory)]


def whole_run(store: Store) -> tuple[list[str], int]:
    """Events and the number of requests of a run that nobody disturbs."""
    with OpenAIServer(obedient) as server:
        asked = ask(store, LlmToolbox(server), GATE)
        return told(store, asked.trajectory_id), len(server.requests)


def broken_run(store: Store, point: str, at: int) -> tuple[list[str], int]:
    """The same where the process is killed and another one resumes."""
    with OpenAIServer(obedient) as server:
        code = killed_asking(store.url, store.home.root, server.base_url, GATE, point, at)
        assert code == -9
        with store.begin() as session:
            left = list_trajectories(session)[0]
        assert (left.state, left.answer) == ("running", None)
        with Asker(store, LlmToolbox(server)) as asker:
            resumed = asker.resume(left.id)
            assert asker.resume(left.id).answer == resumed.answer
        with store.begin() as session:
            row = find_trajectory(session, left.id)
            paid = [call.request_hash for call in calls_of(session, left.id)]
        assert (row.state, row.answer) == ("done", resumed.answer)
        assert len(paid) == len(set(paid))
        return told(store, left.id), len(server.requests)


@pytest.mark.parametrize("point", [point for point in POINTS if point != IN_A_CALL])
def test_a_killed_question_ends_as_if_nothing_had_happened(party: Store, point: str) -> None:
    events, requests = whole_run(party)
    for at in (1, 3) if "search" not in point else (1, 2):
        assert broken_run(party, point, at) == (events, requests)


def test_only_a_reply_that_nobody_wrote_down_is_asked_for_again(party: Store) -> None:
    events, requests = whole_run(party)
    assert broken_run(party, IN_A_CALL, 2) == (events, requests + 1)
