"""Whatever reasoner and memory do, the machine ends with a legal answer, and replays its record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.model_calls import RunBudget
from agent.reasoners.port import Assessment, Conclusion, DecisionContext, Unreadable
from agent.recorder import Halt, Recorder, ReplaySource
from agent.run_context import RunContext
from agent.state import State, ledger_of, plain
from domain.asking import Action, Mode, Question
from domain.errors import BudgetExceeded
from domain.ledger import Edits, Rewrite, SubtaskDraft, refs
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import (
    EVENT,
    Ended,
    Event,
    EvidenceRetrieved,
    Guarded,
    Interrupted,
    ModelCalled,
    QuestionAsked,
    Replanned,
    Resolution,
    RoundOpened,
    Setup,
)
from graphs.machine import HOMER, MACHINES
from graphs.replay import first_divergence, run_from_record
from nodes.finish import stop
from store.queries.trajectories import StoredTrajectory
from strategies.homer.strategy import STRATEGY
from tests.support.full_suite import examples
from tests.support.in_memory_machine import context_of, run_machine
from tests.support.machine import (
    VIDEO,
    DecidedReasoner,
    ScriptedMemory,
    ScriptedReasoner,
    evidence,
    found,
)

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
VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
SCRIPTS = st.fixed_dictionaries(
    {
        "plan": st.lists(st.one_of(ODD, DRAFTS), min_size=1, max_size=2),
        "act": st.lists(ACTIONS, min_size=1, max_size=12),
        "assess": st.lists(ASSESSMENTS, min_size=1, max_size=6),
        "replan": st.lists(EDITS, min_size=1, max_size=3),
        "conclude": st.lists(CONCLUSIONS, min_size=1, max_size=4),
    }
)


def run(
    reasoner: ScriptedReasoner, memory: ScriptedMemory, options: Sequence[str], meter: RunBudget
) -> tuple[State, list[Event]]:
    question = Question(text="What does Ann open?", videos=(VIDEO,), options=tuple(options))
    return run_machine(context_of(reasoner, memory, ASK, meter), question)


@pytest.mark.parametrize("options", [(), ("a car", "the gate", "B", "nothing")])
@given(scripts=SCRIPTS, finds=FINDS)
@settings(
    max_examples=examples(10, 40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_sequence_of_decisions_breaks_the_machine(
    options: tuple[str, ...], scripts: dict[str, Any], finds: list[Any]
) -> None:
    reasoner, memory = ScriptedReasoner(**scripts), ScriptedMemory(finds)
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
    retrieved = {x.ref for e in events if isinstance(e, EvidenceRetrieved) for x in e.evidence}
    assert refs(ledger_of(state)) <= retrieved
    assert {c.ref for c in answer.citations} <= retrieved


@given(costs=st.lists(st.integers(100, 30_000), min_size=1, max_size=30))
@settings(max_examples=examples(8, 20), deadline=None)
def test_the_machine_stops_asking_when_the_tokens_are_spent(costs: list[int]) -> None:
    meter, left = RunBudget(ASK), list(costs)

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
    drawn = {(edge.source, edge.target) for edge in machine.graph.get_graph().edges}
    for step, (_, following) in machine.steps.items():
        ways = {"__end__" if way == "end" else way for way in following}
        assert {target for source, target in drawn if source == step} == ways
    assert set(machine.steps) >= machine.boundaries


def record(
    reasoner: ScriptedReasoner,
    finds: list[Any],
    options: Sequence[str],
    seconds: float,
    stop_at: int | None,
    repeated: Sequence[Event] = (),
) -> tuple[StoredTrajectory, list[Event]]:
    """One run and its record, read back from JSON as a store would give it.

    The clock goes on by a second at each look; ``stop_at`` is when a person stops the run. It takes
    up the run that recorded the ``repeated`` events.
    """
    clock = iter(range(10_000))
    question = Question(text="What does Ann open?", videos=(VIDEO,), options=tuple(options))
    short = ASK.model_copy(update={"seconds": seconds})
    recorder = Recorder(None, "aa", lambda *_: None, strategy=STRATEGY)  # type: ignore[arg-type]
    meter = RunBudget(short, now=lambda: float(next(clock)))
    meter.follow(recorder, 0)
    searched = sum(isinstance(event, EvidenceRetrieved) for event in repeated)
    memory = ScriptedMemory(finds[min(searched, len(finds) - 1) :])
    workspace = RunContext(reasoner, memory, memory.cite, short, recorder, meter)
    first = QuestionAsked(
        question=question,
        machine="homer",
        version=STRATEGY.version,
        profile="p",
        reasoner="scripted",
        view=VIEW,
        setup=Setup(settings=short),
    )
    recorder.begin_with([first], repeated[1:])
    recorder.replay_source = ReplaySource(
        events=repeated, stop=lambda state: state["seq"] == stop_at
    )
    state: State = {
        "trajectory": "aa",
        "seq": 1,
        "question": plain(question),
        "view": plain(VIEW),
        "round": 0,
        "next": "plan",
    }
    try:
        HOMER.run(state, workspace)
    except Halt as halt:
        stop(halt.state, workspace)
    row = StoredTrajectory(
        "aa", question, VIEW, "homer", "p", "done", None, 0, 0.0, datetime(2026, 1, 1, tzinfo=UTC)
    )
    return row, [EVENT.validate_json(event.model_dump_json()) for event in recorder.events]


@settings(max_examples=examples(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    SCRIPTS,
    FINDS,
    st.sampled_from([(), ("a door", "B", "a gate")]),
    st.sampled_from([9_000.0, 60.0, 8.0]),
    st.none() | st.integers(1, 40),
)
def test_a_run_comes_out_of_its_record_again(
    scripts: dict[str, Any],
    finds: list[Any],
    options: tuple[str, ...],
    seconds: float,
    stop_at: int | None,
) -> None:
    reasoner = ScriptedReasoner(**scripts)
    row, events = record(reasoner, finds, options, seconds, stop_at)
    assert isinstance(events[-1], Ended)
    decided = DecidedReasoner(reasoner.decided)
    recorder, why = run_from_record(None, row, events, [], lambda *_: decided)  # type: ignore[arg-type]
    assert first_divergence(events, recorder.events, why) is None
    stops = [event for event in events if isinstance(event, Interrupted)]
    assert (events[-1].state == "stopped") is bool(stops)


@settings(max_examples=examples(15, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(SCRIPTS, FINDS, st.sampled_from([(), ("a door", "B", "a gate")]), st.integers(1, 60))
def test_a_run_that_is_taken_up_again_is_the_run_that_was_not_broken_off(
    scripts: dict[str, Any], finds: list[Any], options: tuple[str, ...], cut: int
) -> None:
    reasoner = ScriptedReasoner(**scripts)
    _, events = record(reasoner, finds, options, 9_000.0, None)
    decided = DecidedReasoner(reasoner.decided)
    _, again = record(decided, finds, options, 9_000.0, None, events[:cut])
    assert again == events
