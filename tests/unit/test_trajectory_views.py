"""A trajectory's rounds, usage, comparison and forks, computed from its events."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.recorder import ReplaySource, source_of, split_recorded_calls
from agent.state import State, ledger_of, plain
from domain.asking import Action, Answer, Mode, Question, Subtask, SubtaskState, Support
from domain.calls import CallRecord
from domain.errors import InputError, ReplayMiss
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import (
    EVENT,
    Acted,
    AnswerProposed,
    Assessed,
    Bound,
    Ended,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    ForkEdit,
    Guarded,
    ImageNote,
    ImagesSeen,
    Interrupted,
    ModelCalled,
    PlanLine,
    Planned,
    Progressed,
    Prompted,
    QuestionAsked,
    Replanned,
    RoundClosed,
    RoundOpened,
    SkillsRouted,
    SupportScored,
    TimeUp,
    canonical_event,
)
from graphs.forks import Parent, editable, forked
from graphs.replay import first_divergence
from library.rounds import History, compare_trajectories
from library.trajectories import usage_in
from tests.support.machine import VIDEO, evidence
from tests.support.stored_rounds import MADE, ROW, TASK
from tests.support.stored_rounds import QUESTION as STORED_QUESTION
from tests.support.stored_rounds import VIEW as STORED_VIEW

QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))
VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
FIRST = QuestionAsked(
    question=QUESTION, machine="homer", version=1, profile="p", reasoner="llm", view=VIEW
)
ONE = Subtask(id="t1", text="what Ann opens")
TWO = Subtask(id="t2", text="whose it is", depends=("t1",))
DONE = ONE.model_copy(
    update={
        "state": SubtaskState.RESOLVED,
        "attempts": 1,
        "evidence": ("m1",),
        "answer": "a door",
        "support": ("m1",),
    }
)
SEARCH = Action(kind="search", mode=Mode.VIDEO, query="Ann opens something")


def called(number: int, purpose: str = "act", **more: Any) -> ModelCalled:
    values = {"model": "m", "request": f"h{number}", "tokens_in": 100, "tokens_out": 10}
    return ModelCalled(round=number, purpose=purpose, **values | more)


def recorded(request: str, reply: str | None = "{}", error: str | None = None) -> CallRecord:
    said = None if reply is None else {"text": reply}
    return CallRecord(request, "act", "p", "m", (), said, error, 1, 1, 0.0, 5)


def found(number: int, *refs: int) -> EvidenceRetrieved:
    items = tuple(evidence(ref) for ref in refs)
    return EvidenceRetrieved(
        round=number, mode=Mode.VIDEO, query=SEARCH.query, evidence=items, focus="s1"
    )


EVENTS: list[Event] = [
    FIRST,
    called(0, "plan", tokens_in=300, ms=2_000, cost_usd=0.5),
    Planned(subtasks=(ONE, TWO)),
    RoundOpened(round=1, subtask="t1", text=ONE.text, attempt=1),
    called(1, ms=1_000),
    Acted(round=1, action=SEARCH),
    found(1, 1, 2),
    called(1, "assess", error="no JSON"),
    RoundClosed(round=1, subtasks=(DONE, TWO), tokens=500),
    RoundOpened(round=2, subtask="t2", text=TWO.text, attempt=1),
    called(2),
    Acted(round=2, action=Action(kind="answer", answer="a door", citations=("m1",))),
    Ended(round=2, state="done", why="answered", answer=None, rounds=2, tokens=0),
]
AT_TWO: State = {
    "trajectory": "aa",
    "seq": 10,
    "question": plain(QUESTION),
    "view": plain(VIEW),
    "ledger": {"subtasks": [plain(DONE), plain(TWO)]},
    "round": 2,
    "current": "t2",
    "next": "act",
}


def test_canonical_events_know_no_clock_and_keep_everything_else() -> None:
    slow, quick = called(1, ms=9_000), called(1, ms=3)
    assert canonical_event(slow) == canonical_event(quick)
    assert json.loads(canonical_event(slow)) == json.loads(slow.model_dump_json(exclude={"ms"}))
    assert canonical_event(called(1, tokens_in=101)) != canonical_event(called(1))


@given(st.text(), st.floats(0, 1))
def test_what_was_stored_reads_back_to_the_same_bytes(text: str, score: float) -> None:
    item = evidence(1, "x").model_copy(update={"text": text, "score": score})
    event = EvidenceRetrieved(mode=Mode.EVENT, query=text, evidence=(item,))
    stored = json.loads(event.model_dump_json())
    assert canonical_event(EVENT.validate_python(stored)) == canonical_event(event)


def test_usage_is_by_purpose_and_by_round() -> None:
    used = usage_in(EVENTS)
    assert (used.total.calls, used.total.failed) == (4, 1)
    assert (used.total.tokens_in, used.total.tokens_out) == (600, 40)
    assert (used.total.cost_usd, used.total.ms) == (0.5, 3_000)
    assert {p: s.calls for p, s in used.by_purpose.items()} == {"plan": 1, "act": 2, "assess": 1}
    assert {r: s.tokens_in for r, s in used.by_round.items()} == {0: 300, 1: 200, 2: 100}
    assert (used.rounds, used.tokens_in_a_round) == (2, 300)


def test_a_fork_does_not_pay_for_its_parent() -> None:
    fork = Forked(round=2, parent="aa", at=2, edit=ForkEdit(), start={})
    used = usage_in([*EVENTS[:10], fork, *EVENTS[10:]])
    assert (used.total.calls, used.rounds) == (1, 1)
    assert usage_in([]).tokens_in_a_round == 0


def history(events: list[Event], answer: str | None = "a door") -> History:
    said = Answer(text=answer, confidence=0.5) if answer else None
    return History(replace(ROW, question=QUESTION, answer=said), events)


def test_equal_runs_do_not_part() -> None:
    thought = Acted(round=1, action=SEARCH.model_copy(update={"reason": "other words"}))
    same = compare_trajectories(history(EVENTS), history([*EVENTS[:5], thought, *EVENTS[6:]]))
    assert same.same
    assert (same.action, same.evidence, same.both) == (None, None, 2)


def test_runs_part_in_actions_and_in_evidence_at_their_own_rounds() -> None:
    other: list[Event] = [*EVENTS[:6], found(1, 2, 3), *EVENTS[7:11], Acted(round=2, action=SEARCH)]
    parted_at = compare_trajectories(history(EVENTS), history(other, "a gate"))
    assert parted_at.evidence is not None
    assert parted_at.action is not None
    assert (parted_at.evidence.round, parted_at.action.round) == (1, 2)
    assert (parted_at.evidence.a and parted_at.evidence.a.seen) == ("m1", "m2")
    assert [e.ref for e in parted_at.only_a] == ["m1"]
    assert [e.ref for e in parted_at.only_b] == ["m3"]
    assert (parted_at.both, parted_at.same_answer, parted_at.same) == (1, False, False)


def test_a_run_that_ended_earlier_parts_where_it_ended() -> None:
    parted_at = compare_trajectories(history(EVENTS), history(EVENTS[:9]))
    assert parted_at.action is not None
    assert (parted_at.action.round, parted_at.action.b) == (2, None)
    assert compare_trajectories(history(EVENTS), history(EVENTS, None)).same_answer is False


@given(st.integers(0, len(EVENTS) - 1))
def test_the_first_event_that_differs_is_found(at: int) -> None:
    changed = list(EVENTS)
    changed[at] = Failed(round=9, where="x", message="y")
    found_at = first_divergence(EVENTS, changed)
    assert found_at is not None
    assert (found_at.at, found_at.recorded, found_at.replayed) == (at, EVENTS[at], changed[at])
    short = first_divergence(EVENTS, EVENTS[:at], "it ran out")
    assert short is not None
    assert (short.at, short.replayed, short.why) == (at, None, "it ran out")
    assert first_divergence(EVENTS, list(EVENTS)) is None


def test_recorded_calls_are_served_once_in_order_and_to_the_same_request_only() -> None:
    past = ReplaySource([recorded("h1"), recorded("h2")])
    first = past.call("h1", "act")
    assert (first and first.request_hash) == "h1"
    assert past.call("h9", "act") is None
    assert past.call("h2", "act") is None
    alone = ReplaySource([recorded("h1")], alone=True)
    with pytest.raises(ReplayMiss, match="'assess'"):
        alone.call("h9", "assess")
    assert (past.served, alone.served) == (1, 0)


def test_calls_that_no_event_tells_of_are_what_goes_on_takes() -> None:
    calls = [
        recorded("h0"),
        recorded("h1", None, "refused"),
        recorded("h1"),
        recorded("h2", None, "refused"),
        recorded("h3"),
    ]
    output, later = split_recorded_calls(calls, [called(0), called(1)])
    assert [c.request_hash for c in output] == ["h0", "h1"]
    assert output[1].error is None
    assert [c.request_hash for c in later] == ["h2", "h3"]
    goes_on = source_of(calls, [FIRST, called(0), called(1)])
    assert [goes_on.call(request, "act") is not None for request in ("h0", "h1", "h3")] == [
        True
    ] * 3


def test_what_is_edited_is_shown_as_it_was() -> None:
    shown = editable(EVENTS, 1)
    assert shown.plan == (
        PlanLine(id="t1", text=ONE.text),
        PlanLine(id="t2", text=TWO.text, depends=("t1",)),
    )
    assert (shown.action, shown.profile) == (SEARCH, "p")
    assert [e.ref for e in shown.evidence or ()] == ["m1", "m2"]
    assert editable(EVENTS, 2).evidence is None
    assert ForkEdit.model_validate_json(shown.model_dump_json()) == shown


def fork_of(edit: ForkEdit) -> tuple[Event, ...]:
    before, fork = forked(Parent("aa", EVENTS, AT_TWO), 2, edit, "bb")
    return (*before, fork)


def test_a_fork_begins_with_its_parents_events_and_state() -> None:
    *before, last = fork_of(ForkEdit())
    assert before == EVENTS[:10]
    assert isinstance(last, Forked)
    assert (last.start["trajectory"], last.start["seq"]) == ("bb", 11)
    assert last.start | {"trajectory": "aa", "seq": 10} == AT_TWO


def test_evidence_of_a_round_without_a_search_cannot_be_edited() -> None:
    with pytest.raises(InputError, match="no search"):
        fork_of(ForkEdit(evidence=()))


@given(
    st.lists(
        st.builds(
            PlanLine,
            id=st.sampled_from([None, "t1", "t2", "t3"]),
            text=st.sampled_from(["what Ann opens", "whose it is", "who", "when", " "]),
            depends=st.lists(st.sampled_from(["t1", "t2", "t9"]), max_size=2).map(tuple),
        ),
        max_size=7,
    ).map(tuple)
)
def test_any_plan_a_person_writes_is_a_legal_ledger_or_refused(lines: tuple[PlanLine, ...]) -> None:
    try:
        last = fork_of(ForkEdit(plan=lines))[-1]
    except InputError:
        return
    assert isinstance(last, Forked)
    if last.edit.plan is None:
        assert last.start["round"] == 2
        return
    start: Any = last.start
    subtasks = ledger_of(start).subtasks
    assert (start["round"], start["next"]) == (1, "schedule")
    assert subtasks[0] == DONE
    assert len({s.id for s in subtasks}) == len(subtasks)
    assert sum(s.state is not SubtaskState.ABANDONED for s in subtasks) <= AskSettings().subtasks
    wanted = {" ".join(line.text.split()) for line in lines if line.id is None}
    assert wanted <= {s.text for s in subtasks}
    kept = {line.id for line in lines}
    assert all(s.state is SubtaskState.ABANDONED for s in subtasks[1:2] if s.id not in kept)


SEARCH_OF_STORED = Action(kind="search", mode=Mode.EVENT, query="Ann opens")
ANSWER = Action(kind="answer", answer="a door", citations=("m1",))
EVENTS_OF_STORED: list[Event] = [
    QuestionAsked(
        question=STORED_QUESTION,
        machine="homer",
        version=1,
        profile="local",
        reasoner="local",
        view=STORED_VIEW,
    ),
    Prompted(purpose="plan", request="h0"),
    ModelCalled(purpose="plan", model="m", request="h0", tokens_in=5, cost_usd=0.25),
    SkillsRouted(),
    Planned(subtasks=(TASK,)),
    Progressed(verdict="go"),
    RoundOpened(round=1, subtask="t1", text=TASK.text, attempt=1),
    ModelCalled(round=1, purpose="act", model="m", request="h1", cost_usd=0.5),
    Acted(round=1, action=None),
    Guarded(round=1, accepted=False, rule="format", complaint="no action"),
    Acted(round=1, action=SEARCH_OF_STORED, attempt=1),
    Guarded(round=1, accepted=True),
    EvidenceRetrieved(
        round=1, mode=Mode.EVENT, query="Ann opens", evidence=(evidence(1),), focus="s1"
    ),
    Bound(round=1, subtask="t1", refs=("m1",), best_score=0.6),
    ImagesSeen(round=1, shown=("k1",), seen=(ImageNote(ref="k1", text="a red door"),)),
    Assessed(round=1, increment=0.5, low=False, saturated=False),
    RoundClosed(round=1, subtasks=(TASK,), tokens=5, warning="grace round: little new"),
    Forced(round=1, mode=Mode.VIDEO, reason="stuck"),
    Progressed(round=1, verdict="replan", reasons=("t1 stalled",)),
    Replanned(round=1, subtasks=(TASK,), reasons=("t1 stalled",)),
    Forked(round=1, parent="bb22", at=2, edit=ForkEdit(action=ANSWER), start={"round": 1}),
    RoundOpened(round=2, subtask="t1", text=TASK.text, attempt=2, focus="s1"),
    Acted(round=2, action=ANSWER),
    Guarded(round=2, accepted=True),
    AnswerProposed(round=2, action=ANSWER, accepted=True),
    TimeUp(round=2, look=7),
    SupportScored(round=2, claim="why?", scores=(Support(ref="m1", score=0.9),)),
    Interrupted(round=2),
    Failed(round=2, where="cite", message="no row has m9"),
    Ended(round=2, state="done", why="answered", answer=MADE, rounds=2, tokens=5),
]


def test_every_event_reads_back_from_json_as_it_was() -> None:
    for event in EVENTS_OF_STORED:
        assert EVENT.validate_json(event.model_dump_json()) == event
        assert EVENT.validate_python(event.model_dump(mode="json")) == event


def test_all_kinds_of_events_are_in_this_test() -> None:
    union, *_ = get_args(Event)
    assert {type(event) for event in EVENTS_OF_STORED} == set(get_args(union))


def test_rounds_tell_what_was_asked_and_found() -> None:
    first, second = History(ROW, EVENTS_OF_STORED).rounds
    assert (first.number, first.subtask, first.text) == (1, "t1", TASK.text)
    assert first.action == SEARCH_OF_STORED
    assert first.found is not None
    assert first.found.evidence == (evidence(1),)
    assert first.assessed is not None
    assert [c.request for c in first.calls] == ["h1"]
    assert (second.action, second.found) == (ANSWER, None)


def test_a_history_sums_up_calls_costs_errors_and_the_end() -> None:
    shown = History(ROW, EVENTS_OF_STORED)
    assert (shown.row.id, shown.row.state, shown.why) == ("aa11", "done", "answered")
    assert shown.plan == (TASK,)
    assert shown.cost_usd == 0.75
    assert [c.purpose for c in shown.calls] == ["plan", "act"]
    assert [e.where for e in shown.of(Failed)] == ["cite"]
    assert shown.row.answer == MADE
