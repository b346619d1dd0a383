"""What the reasoning machine costs without models: checkpoints and record on, beside a bare loop.

    python -m benchmarks.machine

Prints the median milliseconds a round, of the machine and of a loop that makes the same calls to
reasoner and memory and keeps nothing.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from domain.asking import Question
from domain.ledger import Draft
from domain.settings import AskSettings
from domain.view import MemoryView, Scope
from graphs.asker import Asker
from nodes.reasoners.port import Turn
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.asking import WordToolbox
from tests.support.machine import (
    VIDEO,
    ScriptedDesks,
    ScriptedMemory,
    ScriptedReasoner,
    evidence,
    found,
    watched,
)

QUESTIONS = 30
ROUNDS = 10
PLAN = tuple(Draft(text=f"fact {i}") for i in range(5))
QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))


def memory() -> ScriptedMemory:
    """Ten searches with twenty new lines each."""
    finds = []
    for at in range(ROUNDS + 1):
        lines = [evidence(20 * at + i, f"new{at}x{i} more{at}x{i}") for i in range(20)]
        finds.append(found(*lines, focus=at + 1))
    return ScriptedMemory(finds)


def machine_ms(store: Store) -> float:
    """Milliseconds a round of the machine, the median over questions."""
    taken = []
    for _ in range(QUESTIONS):
        desks = ScriptedDesks(ScriptedReasoner(plan=[PLAN]), memory(), AskSettings())
        with Asker(store, WordToolbox(), desks) as asker:
            started = time.perf_counter()
            asked = asker.ask(QUESTION)
            taken.append((time.perf_counter() - started) * 1000 / asked.rounds)
        assert asked.rounds == ROUNDS
    return statistics.median(taken)


def bare_ms() -> float:
    """Milliseconds a round of a loop that only calls reasoner and memory."""
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    taken = []
    for _ in range(QUESTIONS):
        reasoner, searched = ScriptedReasoner(plan=[PLAN]), memory()
        started = time.perf_counter()
        reasoner.plan(Turn(question=QUESTION, view=view))
        for number in range(1, ROUNDS + 1):
            turn = Turn(question=QUESTION, view=view, round=number)
            action = reasoner.act(turn)
            assert action.mode is not None
            searched.search(view, action.mode, action.query)
            reasoner.assess(turn)
        reasoner.conclude(turn)
        taken.append((time.perf_counter() - started) * 1000 / ROUNDS)
    return statistics.median(taken)


def main() -> None:
    """Measure on a database of its own, thrown away afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        server = EmbeddedPostgres(home)
        try:
            with open_store(home) as store:
                watched(store)
                machine, bare = machine_ms(store), bare_ms()
        finally:
            server.stop()
    print(f"machine      {machine:6.1f} ms a round (bar: 25)")
    print(f"bare loop    {bare:6.1f} ms a round")


if __name__ == "__main__":
    main()
