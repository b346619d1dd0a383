"""Whatever a reasoner and a memory do, the machine ends with a legal answer within its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.budget import RunBudget
from agent.reasoners.port import Assessment, Conclusion, DecisionContext, Unreadable
from agent.state import State, ledger_of
from domain.asking import Action, Mode, Question
from domain.errors import BudgetExceeded
from domain.ledger import Edits, Rewrite, SubtaskDraft, refs
from domain.settings import AskSettings
from domain.trajectory import (
    Ended,
    Event,
    EvidenceRetrieved,
    Guarded,
    ModelCalled,
    Replanned,
    Resolution,
    RoundOpened,
)
from graphs.machines import MACHINES
from tests.support.full_suite import examples
from tests.support.in_memory_machine import context_of, run_machine
from tests.support.machine import VIDEO, ScriptedMemory, ScriptedReasoner, evidence, found

ASK = AskSettings()
REFS = st.lists(st.sampled_from(["m1", "m2", "m3", "s1", "m950", "zz", ""]), max_size=3).map(tuple)
TEXTS = st.sampled_from(["a red car", "", "who?", "the door opens", "the gate", "B", "A or B", "é"])
ODD = st.sampled_from([Unreadable("no JSON"), BudgetExceeded("spent")])
TASKS = st.sampled_from(["t1", "t2", "t3", "t9", ""])
DRAFTS = st.lists(
    st.builds(SubtaskDraft, text=TEXTS, depends=st.lists(TASKS, max_size=2).map(tuple)), max_size=7
)
ACTIONS = st.one_of(
    ODD,
    st.builds(
        Action,
        kind=st.sampled_from(["search", "answer"]),
        mode=st.one_of(st.none(), st.sampled_from(list(Mode))),
        query=TEXTS,
        answer=TEXTS,
        citations=REFS,
        not_in_memory=st.booleans(),
    ),
)
ASSESSMENTS = st.one_of(
    ODD,
    st.builds(
        Assessment,
        resolved=st.lists(
            st.builds(Resolution, subtask=TASKS, answer=TEXTS, refs=REFS), max_size=2
        ).map(tuple),
        reopened=st.lists(TASKS, max_size=2).map(tuple),
    ),
)
EDITS = st.one_of(
    ODD,
    st.builds(
        Edits,
        rewrite=st.lists(st.builds(Rewrite, id=TASKS, text=TEXTS), max_size=2).map(tuple),
        add=DRAFTS.map(tuple),
        abandon=st.lists(TASKS, max_size=3).map(tuple),
    ),
)
CONCLUSIONS = st.one_of(
    ODD,
    st.builds(
        Conclusion,
        text=TEXTS,
        option=st.one_of(st.none(), st.sampled_from(["A", "B", "Z", "maybe B", ""])),
        refs=REFS,
        not_in_memory=st.booleans(),
        share=st.one_of(st.none(), st.floats(0, 1)),
    ),
)
FINDS = st.lists(
    st.builds(
        lambda items, focus, close: found(*items, focus=focus, close=close),
        st.lists(st.integers(1, 4).map(evidence), max_size=3, unique_by=lambda e: e.ref),
        st.one_of(st.none(), st.integers(1, 3)),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def run(
    reasoner: ScriptedReasoner, memory: ScriptedMemory, options: Sequence[str], meter: RunBudget
) -> tuple[State, list[Event]]:
    question = Question(text="What does Ann open?", videos=(VIDEO,), options=tuple(options))
    return run_machine(context_of(reasoner, memory, ASK, meter), question)


@pytest.mark.parametrize("options", [(), ("a car", "the gate", "B", "nothing")])
@given(
    plans=st.lists(st.one_of(ODD, DRAFTS), min_size=1, max_size=2),
    acts=st.lists(ACTIONS, min_size=1, max_size=12),
    assessments=st.lists(ASSESSMENTS, min_size=1, max_size=6),
    edits=st.lists(EDITS, min_size=1, max_size=3),
    conclusions=st.lists(CONCLUSIONS, min_size=1, max_size=4),
    finds=FINDS,
)
@settings(
    max_examples=examples(10, 40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_sequence_of_decisions_breaks_the_machine(
    options: tuple[str, ...],
    plans: list[Any],
    acts: list[Any],
    assessments: list[Any],
    edits: list[Any],
    conclusions: list[Any],
    finds: list[Any],
) -> None:
    reasoner = ScriptedReasoner(
        plan=plans, act=acts, assess=assessments, replan=edits, conclude=conclusions
    )
    memory = ScriptedMemory(finds)
    state, events = run(reasoner, memory, options, RunBudget(ASK))
    ended = events[-1]
    assert isinstance(ended, Ended)
    assert sum(isinstance(e, Ended) for e in events) == 1
    answer = ended.answer
    assert answer is not None
    assert answer.text
    assert 0 <= answer.confidence <= 0.95
    if options:
        assert answer.option in ("A", "B", "C", "D")
        assert answer.text == options["ABCD".index(answer.option)]
        assert not answer.not_in_memory
    else:
        assert answer.option is None
        assert answer.not_in_memory == (not answer.citations)
        assert bool(answer.searched) <= answer.not_in_memory
    rounds = [e.round for e in events if isinstance(e, RoundOpened)]
    assert rounds == list(range(1, len(rounds) + 1))
    assert len(rounds) <= ASK.rounds
    assert sum(isinstance(e, Replanned) and not e.empty for e in events) <= ASK.replans
    assert len(memory.searches) <= len(rounds)
    asked_again = [e for e in events if isinstance(e, Guarded) and not e.accepted]
    for number in rounds:
        assert sum(e.round == number for e in asked_again) <= ASK.retries + 2
    check_evidence(state, events)


def check_evidence(state: State, events: list[Event]) -> None:
    retrieved = {x.ref for e in events if isinstance(e, EvidenceRetrieved) for x in e.evidence}
    assert refs(ledger_of(state)) <= retrieved
    ended = events[-1]
    assert isinstance(ended, Ended)
    assert ended.answer is not None
    assert {c.ref for c in ended.answer.citations} <= retrieved


@given(costs=st.lists(st.integers(100, 30_000), min_size=1, max_size=30))
@settings(max_examples=examples(8, 20), deadline=None)
def test_the_machine_stops_asking_when_the_tokens_are_spent(costs: list[int]) -> None:
    meter = RunBudget(ASK)
    left = list(costs)

    def paid(turn: DecisionContext) -> Action:
        meter.add(left.pop(0) if len(left) > 1 else left[0], 0)
        text = " ".join(f"w{turn.round}{letter}" for letter in "abc")
        return Action(kind="search", mode=turn.forced or Mode.EVENT, query=text)

    reasoner = ScriptedReasoner(
        plan=[[SubtaskDraft(text=f"fact {i}") for i in range(5)]], act=[paid]
    )
    finds = [found(evidence(i, f"new{i} words{i}"), focus=i) for i in range(1, 20)]
    _, events = run(reasoner, ScriptedMemory(finds), (), meter)
    assert isinstance(events[-1], Ended)
    assert meter.tokens <= ASK.tokens + max(costs)
    assert not any(isinstance(e, ModelCalled) for e in events)
    if events[-1].rounds < ASK.rounds:
        assert "tokens" in events[-1].why


def test_the_clock_ends_the_search_too() -> None:
    seconds = iter(range(0, 100_000, 40))
    meter = RunBudget(ASK, now=lambda: float(next(seconds)))
    finds = [found(evidence(i, f"new{i} words{i}"), focus=i) for i in range(1, 20)]
    reasoner = ScriptedReasoner(plan=[[SubtaskDraft(text=f"fact {i}") for i in range(5)]])
    _, events = run(reasoner, ScriptedMemory(finds), (), meter)
    assert isinstance(events[-1], Ended)
    assert "300 seconds" in events[-1].why
    assert events[-1].rounds < ASK.rounds


@pytest.mark.parametrize("name", MACHINES)
def test_every_step_goes_where_the_picture_of_the_machine_says(name: str) -> None:
    """LangGraph follows ``Command``s wherever they go; the declared ways are what is drawn."""
    machine = MACHINES[name]
    drawn = {(edge.source, edge.target) for edge in machine.build().get_graph().edges}
    for step, (_, following) in machine.steps.items():
        ways = {"__end__" if way == "end" else way for way in following}
        assert {target for source, target in drawn if source == step} == ways
    assert set(machine.steps) >= machine.boundaries
