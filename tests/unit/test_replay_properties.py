"""Whatever reasoner and memory do, a run comes out of its record again, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.budget import RunBudget
from agent.reasoners.port import Assessment, Conclusion, Unreadable
from agent.recorder import Recorder
from agent.replay_source import Halt, ReplaySource
from agent.run_context import RunContext
from agent.state import State, plain
from domain.asking import Action, Mode, Question
from domain.errors import BudgetExceeded
from domain.ledger import Edits, Rewrite, SubtaskDraft
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import (
    EVENT,
    Ended,
    Event,
    Interrupted,
    QuestionAsked,
    Resolution,
    Setup,
    TimeUp,
)
from graphs.homer import HOMER
from graphs.replay import first_divergence, run_from_record
from nodes.finish import stop
from store.queries.trajectories import StoredTrajectory
from strategies.homer.strategy import STRATEGY
from tests.support.full_suite import examples
from tests.support.in_memory_machine import machine
from tests.support.machine import (
    VIDEO,
    DecidedReasoner,
    ScriptedMemory,
    ScriptedReasoner,
    evidence,
    found,
)

ASK = AskSettings()
VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
ODD = st.sampled_from([Unreadable("no JSON"), BudgetExceeded("spent")])
REFS = st.lists(st.sampled_from(["m1", "m2", "m950", "zz"]), max_size=2).map(tuple)
TEXTS = st.sampled_from(["a red car", "the door opens", "B", "", "segment 2", "the gate is shut"])
ACTIONS = ODD | st.builds(
    Action,
    kind=st.sampled_from(["search", "search", "answer"]),
    mode=st.sampled_from(list(Mode)),
    query=TEXTS,
    answer=TEXTS,
    citations=REFS,
    not_in_memory=st.booleans(),
)
SCRIPTS = st.fixed_dictionaries(
    {
        "plan": st.lists(
            ODD | st.just((SubtaskDraft(text="one"), SubtaskDraft(text="two"))), min_size=1
        ),
        "act": st.lists(ACTIONS, min_size=1, max_size=8),
        "assess": st.lists(
            ODD
            | st.builds(
                lambda refs: Assessment(
                    resolved=(Resolution(subtask="t1", answer="x", refs=refs),)
                ),
                REFS,
            ),
            min_size=1,
            max_size=4,
        ),
        "replan": st.lists(
            ODD | st.just(Edits(rewrite=(Rewrite(id="t1", text="another"),))),
            min_size=1,
            max_size=3,
        ),
        "conclude": st.lists(
            ODD | st.builds(Conclusion, text=TEXTS, refs=REFS, not_in_memory=st.booleans()),
            min_size=1,
            max_size=3,
        ),
    }
)
FINDS = st.lists(
    st.builds(
        lambda numbers, focus, close: found(*map(evidence, numbers), focus=focus, close=close),
        st.lists(st.sampled_from([1, 2, 3, 950]), max_size=3, unique=True),
        st.none() | st.integers(1, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def run(
    reasoner: ScriptedReasoner,
    finds: list[Any],
    options: Sequence[str],
    seconds: float,
    stop_at: int | None,
) -> tuple[StoredTrajectory, list[Event]]:
    """One run and its record, read back from JSON as a store would give it.

    The clock goes on by a second at each look; ``stop_at`` is when a person stops the run.
    """
    clock = iter(range(10_000))
    question = Question(text="What does Ann open?", videos=(VIDEO,), options=tuple(options))
    short = ASK.model_copy(update={"seconds": seconds})
    recorder = Recorder(None, "aa", lambda *_: None, strategy=STRATEGY)  # type: ignore[arg-type]
    meter = RunBudget(short, now=lambda: float(next(clock)))
    meter.on_time_up = lambda look: recorder.add(TimeUp(round=recorder.round, look=look))
    memory = ScriptedMemory(finds)
    workspace = RunContext(reasoner, memory, memory.cite, short, recorder, meter)
    setup = Setup(settings=short)
    recorder.add(
        QuestionAsked(
            question=question,
            machine="homer",
            version=1,
            profile="p",
            reasoner="scripted",
            view=VIEW,
            setup=setup,
        )
    )
    recorder.replay_source = ReplaySource(stop=stop_at)
    state: State = {
        "trajectory": "aa",
        "seq": 1,
        "question": plain(question),
        "view": plain(VIEW),
        "round": 0,
        "next": "plan",
    }
    limit = {"recursion_limit": HOMER.recursion_limit(short.rounds, short.retries)}
    try:
        machine().invoke(state, limit, context=workspace)
    except Halt as halt:
        stop(halt.state, workspace)
    row = StoredTrajectory(
        "aa", question, VIEW, "homer", "p", "done", None, 0, 0.0, datetime(2026, 1, 1, tzinfo=UTC)
    )
    stored = [EVENT.validate_json(event.model_dump_json()) for event in recorder.events]
    return row, stored


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
    row, events = run(reasoner, finds, options, seconds, stop_at)
    assert isinstance(events[-1], Ended)
    decided = DecidedReasoner(reasoner.decided)
    recorder, why = run_from_record(None, row, events, [], lambda *_: decided)  # type: ignore[arg-type]
    assert first_divergence(events, recorder.events, why) is None
    stops = [event for event in events if isinstance(event, Interrupted)]
    assert (events[-1].state == "stopped") is bool(stops)
