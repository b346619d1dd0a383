"""Questions, and the videos that somebody deletes from under them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import text

from agent.prompt_context import decision_context_of
from domain.asking import Question
from domain.errors import NotFound
from domain.skills import JudgedTrajectory
from domain.trajectory import EvidenceRetrieved, RunEvent
from flows.delete import delete_video_rows
from graphs.runner import Runner
from skills.learn import judge
from store.database import Store
from store.queries import trajectories
from store.queries.trajectories import list_trajectories
from store.queries.videos import delete_video
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer

GATE = Question(text="Who opens the gate?", videos=(PARTY,))


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
