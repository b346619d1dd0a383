"""Events as they happen, as an async iterator; closing it stops the search."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing, suppress
from typing import Any

import pytest

from agent.reasoners.port import DecisionContext
from domain.asking import Question
from domain.errors import ModelError, NotFound
from domain.ledger import SubtaskDraft
from domain.trajectory import Ended, RoundOpened, RunEvent
from graphs.ask_result import AskResult
from graphs.runner import Runner
from graphs.stream import stream
from nodes.finish import SO_FAR
from store.database import Store
from store.queries.trajectories import (
    events_of,
    is_claimed,
)
from tests.support.asking import latest
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

QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))
PLAN = (SubtaskDraft(text="one"), SubtaskDraft(text="two"))
WAIT_S = 60


def contexts(**scripts: Any) -> ScriptedContexts:
    return ScriptedContexts(ScriptedReasoner(plan=[PLAN], **scripts), ScriptedMemory(list(FINDS)))


async def everything(runner: Runner, question: Question = QUESTION) -> list[RunEvent | AskResult]:
    return [output async for output in stream(runner, question)]


def test_events_come_in_order_and_the_answer_last(store: Store) -> None:
    watched(store)
    with runner_for(store, contexts()) as runner:
        *events, asked = asyncio.run(everything(runner))
    assert isinstance(asked, AskResult)
    with store.begin() as session:
        assert events == events_of(session, asked.trajectory_id)
    assert isinstance(events[-1], Ended)
    assert events[-1].answer == asked.answer


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


def test_two_questions_run_side_by_side_in_one_loop(store: Store) -> None:
    watched(store)
    both = threading.Barrier(2, timeout=WAIT_S)

    def meets(turn: DecisionContext) -> Any:
        if turn.round == 1:
            both.wait()
        return varied(turn)

    async def two(runner: Runner, other: Runner) -> list[list[RunEvent | AskResult]]:
        return list(await asyncio.gather(everything(runner), everything(other)))

    with (
        runner_for(store, contexts(act=[meets])) as one,
        runner_for(store, contexts(act=[meets])) as other,
    ):
        first, second = asyncio.run(two(one, other))
    assert first[:-1] == second[:-1]


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


def test_who_leaves_before_the_first_event_leaves_no_search_that_seems_to_go_on(
    store: Store,
) -> None:
    watched(store)
    begun: list[str] = []
    ended = threading.Event()

    async def leave(runner: Runner) -> None:
        events = stream(runner, QUESTION, begun.append, ended.set)
        coming = asyncio.ensure_future(anext(events))
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


def test_what_goes_wrong_is_raised_where_the_answer_is_waited_for(store: Store) -> None:
    watched(store)
    broken = ModelError("the connection was refused")
    with runner_for(store, contexts(act=[varied, broken])) as runner:
        with pytest.raises(ModelError, match="refused"):
            asyncio.run(everything(runner))
        unknown = Question(text="Who?", videos=("ffffffffffffffff",))
        with pytest.raises(NotFound):
            asyncio.run(everything(runner, unknown))
    assert latest(store).state == "failed"


def test_waiting_for_an_answer_does_not_hold_up_the_loop(store: Store) -> None:
    watched(store)
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def both(runner: Runner) -> None:
        ticking = asyncio.ensure_future(tick())
        await everything(runner)
        ticking.cancel()

    def slow(turn: DecisionContext) -> Any:
        time.sleep(0.1)
        return varied(turn)

    with runner_for(store, contexts(act=[slow])) as runner:
        asyncio.run(both(runner))
    assert len(ticks) > 5
