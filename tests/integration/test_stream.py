"""Events as they happen, as an async iterator; closing it stops the search."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing, suppress
from typing import Any

from agent.reasoners.port import DecisionContext
from domain.asking import Question
from domain.ledger import SubtaskDraft
from domain.trajectory import RoundOpened
from graphs.runner import Runner
from graphs.stream import stream
from nodes.finish import SO_FAR
from store.database import Store
from store.queries.trajectories import is_claimed
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
