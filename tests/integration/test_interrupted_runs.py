"""A question whose process is gone does not seem to be searched for ever."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from agent.reasoners.port import DecisionContext
from agent.run_context import decision_context_of
from domain.asking import Question
from domain.errors import DatabaseError, MachineChanged, NotFound
from domain.ledger import SubtaskDraft
from domain.skills import JudgedTrajectory
from domain.trajectory import EvidenceRetrieved, RunEvent
from flows.removal import delete_video_rows
from graphs.runner import Runner
from skills.learn import judge
from store.database import Store
from store.queries import trajectories
from store.queries.clips import memory_view
from store.queries.trajectories import (
    add_trajectory,
    events_of,
    find_trajectory,
    is_claimed,
    list_trajectories,
    stop_abandoned,
)
from store.queries.videos import delete_video
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.machine import (
    FINDS,
    VIDEO,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    runner_for,
    varied,
    watched,
)
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer

GATE = Question(text="Who opens the gate?", videos=(PARTY,))
GONE = "0" * 16


def state(store: Store, name: str) -> str:
    with store.begin() as session:
        return find_trajectory(session, name).state


def test_what_a_killed_process_left_is_stopped_when_the_next_one_begins(party: Store) -> None:
    with party.begin() as session:
        add_trajectory(session, GONE, GATE, memory_view(session, [PARTY]), "homer", "local")
    with Runner(party, WordToolbox()) as runner:
        assert state(party, GONE) == "stopped"
        assert runner.resume(GONE).answer is not None
    assert state(party, GONE) == "done"


def test_what_is_being_searched_goes_on(party: Store) -> None:
    with Runner(party, WordToolbox()) as runner:
        begun, workspace = runner.begin(GATE)
        with Runner(party, WordToolbox()), party.begin() as session:
            (one,) = list_trajectories(session)
            assert (one.state, is_claimed(session, one.id)) == ("running", True)
        assert runner.run(begun, workspace).answer is not None
    with party.begin() as session:
        assert stop_abandoned(session) == 0


def test_a_question_that_cannot_begin_leaves_no_claim(party: Store) -> None:
    with Runner(party, WordToolbox()) as runner:
        with pytest.raises(NotFound):
            runner.ask(Question(text="Who?", videos=("f" * 16,)))
        assert runner._claims._held_by == {}


@pytest.mark.usefixtures("tampered")
def test_a_record_of_another_version_is_refused_and_stays_as_it_is(party: Store) -> None:
    def break_off(event: RunEvent) -> None:
        if isinstance(event, EvidenceRetrieved):
            raise RuntimeError("the power went out")

    with Runner(party, WordToolbox()) as runner:
        with pytest.raises(RuntimeError):
            runner.ask(GATE, on_event=break_off)
        with party.begin() as session:
            (one,) = list_trajectories(session)
            session.execute(
                text(
                    "UPDATE trajectory_events SET payload = jsonb_set(payload, '{version}', '99') "
                    "WHERE kind = 'question'"
                )
            )
            before = events_of(session, one.id)
        for _ in range(2):  # The lock is given back.
            with pytest.raises(MachineChanged, match="version 99"):
                runner.resume(one.id)
    with party.begin() as session:
        assert events_of(session, one.id) == before
    assert state(party, one.id) == "failed"


def crash(store: Store) -> None:
    """What a crash of the database does to a run: connections end, and the last commit is gone."""
    with psycopg.connect(store.psycopg_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute(
            "DELETE FROM trajectory_events WHERE seq = (SELECT max(seq) FROM trajectory_events)"
        )


def test_a_step_that_the_database_lost_is_done_again(store: Store) -> None:
    watched(store)
    turns: list[DecisionContext] = []

    def crashes_once(turn: DecisionContext) -> Any:
        turns.append(turn)
        if len(turns) == 2:
            crash(store)
        return varied(turn)

    script = ScriptedReasoner(
        plan=[(SubtaskDraft(text="one"), SubtaskDraft(text="two"))], act=[crashes_once]
    )
    with runner_for(store, ScriptedContexts(script, ScriptedMemory(list(FINDS)))) as runner:
        with pytest.raises(DatabaseError, match=r"homer resume"):
            runner.ask(Question(text="What does Ann open?", videos=(VIDEO,)))
        with store.begin() as session:
            (one,) = list_trajectories(session)
        assert runner.resume(one.id).answer is not None
    with store.begin() as session:
        numbers = session.scalars(text("SELECT seq FROM trajectory_events ORDER BY seq")).all()
    assert numbers == list(range(len(numbers)))


# Questions, and the videos that somebody deletes from under them.


def wait_for_a_lock(store: Store) -> None:
    """Until somebody waits for another's transaction."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with store.begin() as session:
            if session.scalar(waiting):
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def asked(store: Store) -> int:
    with store.begin() as session:
        return len(list_trajectories(session))


def test_a_question_that_begins_while_its_video_is_deleted_is_refused(store: Store) -> None:
    remember_party(store)
    with Runner(store, WordToolbox()) as runner, ThreadPoolExecutor(1) as other:
        with store.begin() as session:
            delete_video(session, PARTY)
            question = other.submit(runner.ask, GATE)
            wait_for_a_lock(store)
        with pytest.raises(NotFound, match="no video goes by"):
            question.result(30)
    assert asked(store) == 0


def test_an_answer_that_is_judged_while_its_video_is_deleted_is_not_there(store: Store) -> None:
    remember_party(store)
    with Runner(store, WordToolbox()) as runner, ThreadPoolExecutor(1) as other:
        word = JudgedTrajectory(
            trajectory=runner.ask(GATE).trajectory_id, question_type="who", right=True
        )
        with store.begin() as session:
            delete_video(session, PARTY)
            judging = other.submit(judge, store, word)
            wait_for_a_lock(store)
        with pytest.raises(NotFound, match="there is no trajectory"):
            judging.result(30)


def test_no_model_is_paid_for_a_question_that_was_deleted(store: Store) -> None:
    remember_party(store)
    with OpenAIServer(obedient) as model, Runner(store, LlmToolbox(model)) as runner:
        state, workspace = runner.begin(GATE)
        with store.begin() as session:
            delete_video(session, PARTY)
        with pytest.raises(NotFound, match="was deleted"):
            workspace.reasoner.plan(decision_context_of(state, workspace))
        assert model.requests == []


def test_a_video_is_deleted_with_the_question_that_just_began(store: Store) -> None:
    remember_party(store)
    with Runner(store, WordToolbox()) as runner, ThreadPoolExecutor(1) as other:
        deleting = []

        def linked(session: object, trajectory: str) -> None:
            deleting.append(other.submit(delete_video_rows, store, PARTY))
            wait_for_a_lock(store)

        with suppress(NotFound):  # it is deleted at once, or a moment later
            runner.begin(GATE, linked=linked)
        deleting[0].result(30)
    assert asked(store) == 0


def test_a_question_whose_video_is_deleted_meanwhile_says_so(store: Store) -> None:
    remember_party(store)

    def delete_it(event: RunEvent) -> None:
        if isinstance(event, EvidenceRetrieved):
            delete_video_rows(store, PARTY)

    with (
        Runner(store, WordToolbox()) as runner,
        pytest.raises(NotFound, match="was deleted while it was asked"),
    ):
        runner.ask(GATE, on_event=delete_it)
    assert asked(store) == 0


def test_a_question_that_goes_while_questions_are_listed_is_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_party(store)
    with Runner(store, WordToolbox()) as runner:
        runner.ask(GATE)
    read = trajectories._trajectory

    def read_late(*rows: Any) -> Any:
        delete_video_rows(store, PARTY)
        return read(*rows)

    monkeypatch.setattr(trajectories, "_trajectory", read_late)
    assert asked(store) == 0
