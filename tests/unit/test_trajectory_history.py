"""A trajectory's rounds as they are shown, computed from its events."""

from __future__ import annotations

from typing import get_args

from domain.asking import Action, Mode, Support
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
)
from library.rounds import History
from tests.support.machine import evidence
from tests.support.stored_rounds import MADE, QUESTION, ROW, TASK, VIEW

SEARCH = Action(kind="search", mode=Mode.EVENT, query="Ann opens")
ANSWER = Action(kind="answer", answer="a door", citations=("m1",))

EVENTS: list[Event] = [
    QuestionAsked(
        question=QUESTION, machine="homer", version=1, profile="local", reasoner="local", view=VIEW
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
    Acted(round=1, action=SEARCH, attempt=1),
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
    for event in EVENTS:
        assert EVENT.validate_json(event.model_dump_json()) == event
        assert EVENT.validate_python(event.model_dump(mode="json")) == event


def test_all_kinds_of_events_are_in_this_test() -> None:
    union, *_ = get_args(Event)
    assert {type(event) for event in EVENTS} == set(get_args(union))


def test_rounds_tell_what_was_asked_and_found() -> None:
    first, second = History(ROW, EVENTS).rounds
    assert (first.number, first.subtask, first.text) == (1, "t1", TASK.text)
    assert first.action == SEARCH
    assert first.found is not None
    assert first.found.evidence == (evidence(1),)
    assert first.assessed is not None
    assert [c.request for c in first.calls] == ["h1"]
    assert (second.action, second.found) == (ANSWER, None)


def test_a_history_sums_up_calls_costs_errors_and_the_end() -> None:
    shown = History(ROW, EVENTS)
    assert (shown.row.id, shown.row.state, shown.why) == ("aa11", "done", "answered")
    assert shown.plan == (TASK,)
    assert shown.cost_usd == 0.75
    assert [c.purpose for c in shown.calls] == ["plan", "act"]
    assert [e.where for e in shown.of(Failed)] == ["cite"]
    assert shown.row.answer == MADE
