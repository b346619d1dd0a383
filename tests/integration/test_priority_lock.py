"""What nobody waits for stands back while a person waits, and only for so long."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from domain.asking import Question
from flows.workspace import Workspace
from graphs.runner import Runner
from store.advisory_locks import _PRIORITY, _USER, PriorityLock
from store.database import Store, open_store
from store.home import Home
from tests.support.asking import PARTY, WordToolbox, remember_party

PERSON = """
import sys, time
from store.advisory_locks import PriorityLock
with PriorityLock(sys.argv[1]).person():
    print("waits", flush=True)
    time.sleep(60)
"""


CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%pg_locks%'
"""


CUT_ALL = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'
AND query LIKE :query AND query NOT LIKE '%pg_locks%'
"""


@pytest.fixture
def other(home: Home, database: str) -> Iterator[Store]:
    """The same database, as another process has it."""
    with open_store(home, database) as found:
        yield found


def workspace(store: Store, *, background: bool) -> Workspace:
    toolbox: Any = WordToolbox()
    return Workspace(store.home, store, toolbox.profile, toolbox, background)


def test_background_work_goes_on_once_the_last_person_is_served(store: Store, other: Store) -> None:
    work, waited = workspace(other, background=True), list[float]()
    work.give_way(waited.append)
    assert waited == []
    first, second = (
        workspace(store, background=False).turn(),
        workspace(store, background=False).turn(),
    )
    first.__enter__()
    second.__enter__()

    def leave_one_by_one(seconds: float) -> None:
        waited.append(seconds)
        [first, second][len(waited) - 1].__exit__(None, None, None)

    work.give_way(leave_one_by_one)
    assert waited == [1.0, 1.0]


def test_a_person_waits_for_nobody_and_work_for_nobody(store: Store, other: Store) -> None:
    with workspace(store, background=True).turn():
        assert not other.turns.people()
        workspace(other, background=False).give_way(lambda _seconds: pytest.fail("it waited"))
    with store.turns.person():
        workspace(other, background=False).give_way(lambda _seconds: pytest.fail("it waited"))


def test_a_person_whose_process_is_killed_keeps_nobody_waiting(store: Store) -> None:
    script = [sys.executable, "-c", PERSON, store.psycopg_url]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        assert (process.stdout and process.stdout.readline()) == "waits\n"
        assert store.turns.people()
        process.kill()
        process.wait()
        # Postgres sees a moment later that nobody is there any more.
        workspace(store, background=True).give_way(lambda _seconds: time.sleep(0.05))
        assert not store.turns.people()


def test_background_work_outlives_a_connection_that_is_lost(store: Store, other: Store) -> None:
    assert not store.turns.people()
    with other.begin() as session:
        session.execute(text(CUT))
    assert not store.turns.people()


def test_a_person_still_comes_first_after_the_database_was_away(store: Store, other: Store) -> None:
    person = workspace(store, background=False)

    def cut() -> None:
        with other.begin() as session:
            session.execute(text(CUT_ALL), {"query": "%pg_advisory%"})
            session.execute(text(CUT_ALL), {"query": "SELECT 1"})
        assert not other.turns.people()

    with store.turns.person():
        assert other.turns.people()
        cut()
        with store.turns.person():
            assert other.turns.people()
        assert other.turns.people()
        cut()
        person.give_way()
        assert other.turns.people()
    assert not other.turns.people()
    with store.turns.person():
        assert other.turns.people()


def test_a_lock_of_one_key_with_the_same_bits_is_nobody_waiting(store: Store) -> None:
    with store.begin() as session:
        both = {"key": (_PRIORITY << 32) | _USER}
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), both)
        assert not store.turns.people()


def test_what_stands_back_goes_on_after_so_long_all_the_same(store: Store, other: Store) -> None:
    waited = list[float]()
    with store.turns.person():
        assert workspace(other, background=True).give_way(waited.append, 3.0) == 3.0
    assert waited == [1.0] * 3


def test_another_librarys_people_are_not_ours(store: Store, home: Home, make_database: Any) -> None:
    with open_store(home, make_database()) as elsewhere, elsewhere.turns.person():
        assert not store.turns.people()


@pytest.mark.parametrize("attended", [True, False])
def test_only_evaluations_wait_for_nobody(store: Store, other: Store, attended: bool) -> None:
    remember_party(store)
    seen = set[bool]()
    question = Question(text="who?", videos=(PARTY,))
    with Runner(store, WordToolbox(), attended=attended) as runner:
        runner.ask(question, lambda *_event: seen.add(other.turns.people()))
    assert (True in seen) is attended
    assert not other.turns.people()


def test_a_database_that_is_away_stops_no_person() -> None:
    turns = PriorityLock("postgresql://nobody@127.0.0.1:9/none?connect_timeout=1")
    with turns.person():
        pass
    turns.close()
    with pytest.raises(psycopg.OperationalError):
        turns.people()
