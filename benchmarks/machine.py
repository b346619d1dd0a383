"""What the reasoning machine costs without models: checkpoints and record on, beside a bare loop.

The bare loop makes the same calls to reasoner and memory and keeps nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent.reasoners.port import DecisionContext
from benchmarks.lines import Line, Taken
from domain.asking import Mode, Question
from domain.ledger import SubtaskDraft
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from graphs.runner import Runner
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.asking import WordToolbox
from tests.support.machine import (
    VIDEO,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    evidence,
    found,
    watched,
)

QUESTIONS = 30
ROUNDS = 10
MOST_MS = 25.0
PLAN = tuple(SubtaskDraft(text=f"fact {i}") for i in range(5))
QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))


def memory() -> ScriptedMemory:
    """Ten searches with twenty new lines each."""
    finds = []
    for at in range(ROUNDS + 1):
        lines = [evidence(20 * at + i, f"new{at}x{i} more{at}x{i}") for i in range(20)]
        finds.append(found(*lines, focus=at + 1))
    return ScriptedMemory(finds)


def machine_ms(store: Store) -> Taken:
    """Return milliseconds a round of the machine, question by question."""
    taken = []
    for _ in range(QUESTIONS):
        contexts = ScriptedContexts(ScriptedReasoner(plan=[PLAN]), memory(), AskSettings())
        with Runner(store, WordToolbox(), contexts) as runner:
            started = time.perf_counter()
            asked = runner.ask(QUESTION)
            taken.append((time.perf_counter() - started) * 1000 / asked.rounds)
        assert asked.rounds == ROUNDS
    return Taken(tuple(taken))


def bare_ms() -> Taken:
    """Return milliseconds a round of a loop that only calls reasoner and memory."""
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    taken = []
    for _ in range(QUESTIONS):
        reasoner, searched = ScriptedReasoner(plan=[PLAN]), memory()
        started = time.perf_counter()
        reasoner.plan(DecisionContext(question=QUESTION, view=view))
        for number in range(1, ROUNDS + 1):
            turn = DecisionContext(question=QUESTION, view=view, round=number)
            action = reasoner.act(turn)
            assert isinstance(action.mode, Mode)
            searched.search(view, action.mode, action.query)
            reasoner.assess(turn)
        reasoner.conclude(turn)
        taken.append((time.perf_counter() - started) * 1000 / ROUNDS)
    return Taken(tuple(taken))


def lines() -> Iterator[Line]:
    """One line: what a round costs more than the bare loop's, over the bar."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                watched(store)
                machine, bare = machine_ms(store), bare_ms()
        finally:
            EmbeddedPostgres(home).stop()
    share = (machine.median - bare.median) / MOST_MS
    what = f"a round of the machine (bar {MOST_MS:.0f} ms more)"
    yield Line(what, machine, bare, "bare loop", share, 1.0, more=False)
