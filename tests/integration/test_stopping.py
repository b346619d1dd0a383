"""Ctrl-C while a question is asked: the best answer so far, marked as such, and a way to go on."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from contextlib import aclosing, suppress
from typing import Any

import pytest

from agent.model_calls import Calls
from agent.reasoners.port import Assessment, DecisionContext
from domain.asking import Question
from domain.errors import InputError
from domain.ledger import SubtaskDraft
from domain.trajectory import Ended, Interrupted, RoundOpened, canonical_event
from graphs.ask_result import StoppedEarly
from graphs.concurrent import stream
from graphs.replay import replay
from graphs.runner import Runner
from nodes.finish import NOTHING_YET, SO_FAR
from store.database import Store
from store.queries.trajectories import events_of, find_trajectory, is_claimed, list_trajectories
from tests.support.asking import PARTY, latest, remember_party
from tests.support.cli_process import homer
from tests.support.full_suite import in_full
from tests.support.machine import (
    FINDS,
    VIDEO,
    DecidedReasoner,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    runner_for,
    varied,
    watched,
)
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask, resume

GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))
OPEN = Question(text="What does Ann open?", videos=(VIDEO,))
PLAN = (SubtaskDraft(text="one"), SubtaskDraft(text="two"))


def interrupted(_: DecisionContext) -> Any:
    raise KeyboardInterrupt


def kinds(store: Store, trajectory: str) -> list[str]:
    with store.begin() as session:
        return [event.kind for event in events_of(session, trajectory)]


def stopped_asking(store: Store, question: Question, **scripts: Any) -> tuple[Any, Any]:
    """The answer of a question that is interrupted, and what decided it."""
    reasoner = ScriptedReasoner(plan=[PLAN], **scripts)
    contexts = ScriptedContexts(reasoner, ScriptedMemory(list(FINDS)))
    with runner_for(store, contexts) as runner, pytest.raises(StoppedEarly) as stopped:
        runner.ask(question)
    return stopped.value.asked, reasoner


@pytest.mark.parametrize(
    ("scripts", "text", "cited"),
    [
        ({"act": [interrupted]}, NOTHING_YET, []),
        ({"act": [varied, interrupted]}, "alpha1 beta1 gamma1", ["m1"]),
        ({"assess": [interrupted]}, "alpha1 beta1 gamma1", ["m1"]),
        ({"conclude": [interrupted]}, None, None),
    ],
    ids=["at once", "act", "assess", "conclude"],
)
def test_what_was_found_is_the_answer_and_says_that_it_was_stopped(
    store: Store, scripts: dict[str, Any], text: str | None, cited: list[str] | None
) -> None:
    watched(store)
    asked, reasoner = stopped_asking(store, OPEN, **scripts)
    assert SO_FAR in asked.answer.note
    if cited is not None:
        assert (asked.answer.text, [c.ref for c in asked.answer.citations]) == (text, cited)
    with store.begin() as session:
        row = find_trajectory(session, asked.trajectory_id)
        events = events_of(session, row.id)
    assert (row.state, row.answer) == ("stopped", asked.answer)
    assert isinstance(events[-1], Ended)
    assert (events[-1].state, events[-1].why) == ("stopped", "it was stopped")
    assert [e for e in events if isinstance(e, Interrupted)]
    decided = reasoner.decided
    again = replay(store, row.id, lambda *_: DecidedReasoner(decided))
    assert again.divergence is None, again.divergence


def test_resolved_subtasks_are_the_best_answer(store: Store) -> None:
    watched(store)

    def resolves(turn: DecisionContext) -> Assessment:
        claim = {"subtask": "t1", "answer": "the green door", "refs": ("m1",)}
        return Assessment.model_validate({"resolved": (claim,)})

    asked, _ = stopped_asking(store, OPEN, act=[varied, interrupted], assess=[resolves])
    assert asked.answer.text == "the green door"
    assert [c.ref for c in asked.answer.citations] == ["m1"]
    assert asked.answer.confidence > 0


def test_a_stopped_question_can_be_searched_to_the_end(store: Store) -> None:
    watched(store)
    plain = ScriptedContexts(ScriptedReasoner(plan=[PLAN]), ScriptedMemory(list(FINDS)))
    with runner_for(store, plain) as runner:
        whole = runner.ask(OPEN)
    script = ScriptedReasoner(plan=[PLAN], act=[varied, varied, interrupted, varied])
    contexts = ScriptedContexts(script, ScriptedMemory(list(FINDS)))
    with runner_for(store, contexts) as runner:
        with pytest.raises(StoppedEarly) as stopped:
            runner.ask(OPEN)
        again = runner.resume(stopped.value.asked.trajectory_id)
    assert again.answer == whole.answer
    with store.begin() as session:
        one, other = (
            events_of(session, whole.trajectory_id),
            events_of(session, again.trajectory_id),
        )
    assert [canonical_event(e) for e in one] == [canonical_event(e) for e in other]


def test_calls_paid_for_before_the_stop_are_counted_and_not_paid_twice(store: Store) -> None:
    remember_party(store)
    stops, real = iter([False, False, True]), Calls._count
    with OpenAIServer(obedient) as server:
        toolbox = LlmToolbox(server)
        with pytest.MonkeyPatch.context() as patch:

            def count(self: Calls, call: Any) -> None:
                real(self, call)
                if next(stops, False):
                    raise KeyboardInterrupt

            patch.setattr(Calls, "_count", count)
            with pytest.raises(StoppedEarly) as stopped:
                ask(store, toolbox, GATE)
        asked = stopped.value.asked
        assert asked.tokens == 3 * 120
        assert asked.answer.option
        assert replay(store, asked.trajectory_id).whole
        paid = len(server.requests)
        assert resume(store, toolbox, asked.trajectory_id).answer.option
        purposes = [purpose_of(r) for r in server.requests]
    assert (paid, purposes.count("plan")) == (3, 1)
    assert "stop" not in kinds(store, asked.trajectory_id)
    assert replay(store, asked.trajectory_id).whole


@pytest.mark.parametrize("form", [(), in_full((("--json",),))])
def test_ctrl_c_in_a_terminal_prints_the_answer_so_far(
    store: Store, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    remember_party(store)
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    reached, go_on = threading.Event(), threading.Event()

    def slow(request: dict[str, Any]) -> Any:
        if purpose_of(request) == "conclude" or len(server.requests) > 3:
            reached.set()
            go_on.wait(60)
        return obedient(request)

    with OpenAIServer(slow) as server:
        arguments = ["ask", GATE.text, *(x for o in GATE.options for x in ("-o", o)), *form]
        process = homer(server.base_url, *arguments)
        assert reached.wait(90)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        go_on.set()
    with store.begin() as session:
        row = list_trajectories(session)[0]
    assert process.returncode == 130
    assert f"homer resume {row.id}" in err
    assert "Traceback" not in err
    assert "connection" not in err
    assert row.state == "stopped"
    assert row.answer is not None
    if form:
        line = json.loads(out)
        assert (line["option"], line["id"]) == (row.answer.option, row.id)
        assert line["citations"]
    else:
        assert out.startswith(f"{row.answer.option}. ")
        assert SO_FAR in out


def test_a_question_that_is_being_searched_cannot_be_resumed_by_another(store: Store) -> None:
    watched(store)
    tried: list[str] = []

    def meddles(turn: DecisionContext) -> Any:
        if turn.round == 2:
            with store.begin() as session:
                name = list_trajectories(session)[0].id
            for meddler in (runner, other):
                with pytest.raises(InputError, match="at this moment"):
                    meddler.resume(name)
                tried.append(name)
        return varied(turn)

    script = ScriptedReasoner(plan=[PLAN], act=[meddles])
    contexts = ScriptedContexts(script, ScriptedMemory(list(FINDS)))
    with (
        pytest.MonkeyPatch.context() as patch,
        runner_for(store, contexts) as runner,
        runner_for(store, contexts) as other,
    ):
        patch.setattr("store.advisory_locks.TrajectoryLocks.take.__defaults__", (0.1,))
        asked = runner.ask(OPEN)
        assert other.resume(asked.trajectory_id).answer == asked.answer
    assert len(tried) == 2
    assert kinds(store, asked.trajectory_id)[-1] == "end"


# Events as they happen, as an async iterator; closing it stops the search.


QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))
WAIT_S = 60


def contexts(**scripts: Any) -> ScriptedContexts:
    return ScriptedContexts(ScriptedReasoner(plan=[PLAN], **scripts), ScriptedMemory(list(FINDS)))


def test_a_round_is_reported_while_the_next_is_still_to_come(store: Store) -> None:
    watched(store)
    go_on = threading.Event()

    def waits(turn: DecisionContext) -> Any:
        if turn.round == 2:
            assert go_on.wait(WAIT_S), "nobody was told of the second round"
        return varied(turn)

    async def follow(runner: Runner) -> int:
        rounds = 0
        async for output in stream(runner, QUESTION):
            if isinstance(output, RoundOpened):
                rounds = output.round
                if rounds == 2:
                    go_on.set()
        return rounds

    with runner_for(store, contexts(act=[waits])) as runner:
        assert asyncio.run(follow(runner)) > 2


def test_who_leaves_stops_the_search_and_the_best_answer_so_far_is_stored(store: Store) -> None:
    watched(store)
    left = threading.Event()

    def waits(turn: DecisionContext) -> Any:
        if turn.round == 2:
            assert left.wait(WAIT_S)
        return varied(turn)

    async def leave(runner: Runner) -> None:
        async with aclosing(stream(runner, QUESTION)) as events:
            async for output in events:
                if isinstance(output, RoundOpened) and output.round == 2:
                    break
        left.set()
        for _ in range(WAIT_S * 10):
            if latest(store).state != "running":
                return
            await asyncio.sleep(0.1)

    with runner_for(store, contexts(act=[waits])) as runner:
        asyncio.run(leave(runner))
        row = latest(store)
        assert row.state == "stopped"
        assert row.answer is not None
        assert SO_FAR in row.answer.note
        assert [c.ref for c in row.answer.citations] == ["m1"]
        again = runner.resume(row.id)
    assert SO_FAR not in again.answer.note


def test_who_leaves_before_first_event_leaves_no_search_that_seems_to_go_on(store: Store) -> None:
    watched(store)
    begun: list[str] = []
    ended = threading.Event()

    async def leave(runner: Runner) -> None:
        coming = asyncio.ensure_future(anext(stream(runner, QUESTION, begun.append, ended.set)))
        await asyncio.sleep(0)
        coming.cancel()
        with suppress(asyncio.CancelledError):
            await coming
        assert await asyncio.to_thread(ended.wait, WAIT_S)

    with runner_for(store, contexts()) as runner:
        asyncio.run(leave(runner))
        row = latest(store)
        assert (begun, row.state) == ([row.id], "stopped")
        with store.begin() as session:
            assert not is_claimed(session, row.id)
