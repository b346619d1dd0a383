"""Model calls with their pool, trajectories with their events: what is stored is what was said."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from domain.asking import Question
from domain.errors import Ambiguous, NotFound
from domain.memories import MemoryView, Scope
from domain.trajectory import Failed, Forced, RoundOpened
from store.database import Store
from store.queries.trajectories import (
    add_trajectory,
    append_events,
    events_of,
    find_trajectory,
    list_trajectories,
)
from tests.support.machine import VIDEO, watched

QUESTION = Question(
    text="What does Ann open?", videos=(VIDEO,), options=("a door", "ünïcode"), as_of_ms=90_000
)
VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=2),))
EVENTS = [
    RoundOpened(round=1, subtask="t1", text="what", attempt=1),
    Forced(round=1, mode="video", reason="stuck"),
    Failed(round=1, where="act", message="it said: 'nö' \\ \" <b>"),
]


@pytest.fixture
def running(store: Store) -> Store:
    watched(store)
    with store.begin() as session:
        add_trajectory(session, "aa11", QUESTION, VIEW, "homer", "local")
    return store


def append(store: Store, first: int, events: list[Any]) -> None:
    with psycopg.connect(store.psycopg_url, autocommit=True) as connection:
        append_events(connection, "aa11", first, events)


def test_a_trajectory_is_found_by_an_unambiguous_beginning(running: Store) -> None:
    with running.begin() as session:
        add_trajectory(session, "aa1", QUESTION, VIEW, "homer", "local")
        add_trajectory(session, "bb22", QUESTION, VIEW, "homer", "local")
        assert find_trajectory(session, "b").id == "bb22"
        assert find_trajectory(session, "aa1").id == "aa1"
        assert {t.id for t in list_trajectories(session)} == {"aa1", "aa11", "bb22"}
        assert len(list_trajectories(session, limit=2)) == 2
        with pytest.raises(Ambiguous):
            find_trajectory(session, "aa")
        for name in ("", "c", "%", "_a11"):
            with pytest.raises(NotFound):
                find_trajectory(session, name)


def test_events_keep_their_order_and_can_only_be_appended(running: Store) -> None:
    append(running, 0, EVENTS[:1])
    append(running, 1, EVENTS[1:])
    append(running, 3, [])
    with running.begin() as session:
        assert events_of(session, "aa11") == EVENTS
    with pytest.raises(psycopg.errors.UniqueViolation):
        append(running, 2, EVENTS[:1])
