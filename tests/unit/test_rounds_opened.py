"""A round opened up: what the harness did in it, what changed in the ledger, and its headline."""

from __future__ import annotations

import pytest

from agent.state import plain
from domain.asking import Action, Mode, Subtask, SubtaskState
from domain.trajectory import (
    Acted,
    AnswerProposed,
    Assessed,
    Bound,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    ForkEdit,
    Guarded,
    Interrupted,
    ModelCalled,
    Planned,
    Progressed,
    Replanned,
    Resolution,
    RoundClosed,
    RoundOpened,
    SkillsRouted,
    TimeUp,
)
from library.rounds import History, message_text, round_headline
from tests.support.machine import evidence
from tests.support.stored_rounds import ROW, TASK
from ui.harness_remarks import HarnessPart, harness_remarks, ledger_changes, round_remarks

OTHER = Subtask(id="t2", text="where it leads", depends=("t1",))
SEARCH = Action(kind="search", mode=Mode.VIDEO, query="a gate")
ANSWER = Action(kind="answer", answer="a gate")


def found(number: int = 1, **more: object) -> EvidenceRetrieved:
    output = {
        "mode": Mode.VIDEO,
        "query": "a gate",
        "evidence": (evidence(1, score=0.625),),
        **more,
    }
    return EvidenceRetrieved.model_validate({"round": number, **output})


def opened(*events: Event) -> History:
    return History(ROW, events)


@pytest.mark.parametrize(
    ("event", "part", "named"),
    [
        (found(), HarnessPart.INFORM, "0.62"),
        (found(images=("a" * 64, "b" * 64)), HarnessPart.INFORM, "2 images"),
        (found(nothing_close=True), HarnessPart.INFORM, "'a gate'"),
        (found(evidence=()), HarnessPart.INFORM, "'a gate'"),
        (found(evidence=(), refused="no label"), HarnessPart.INFORM, "no label"),
        (Bound(subtask="t1", refs=("m1",), best_score=0.5), HarnessPart.INFORM, "t1"),
        (Guarded(accepted=True), HarnessPart.CONSTRAIN, "accepted"),
        (Guarded(accepted=False, rule="r", complaint="c"), HarnessPart.CONSTRAIN, "'r': c"),
        (AnswerProposed(action=ANSWER, accepted=True), HarnessPart.VERIFY, "accepted"),
        (AnswerProposed(action=ANSWER, accepted=False, complaint="c"), HarnessPart.VERIFY, "c"),
        (Assessed(increment=0.125, low=True, saturated=False), HarnessPart.VERIFY, "12%"),
        (Planned(subtasks=(TASK,), dropped=("t9", "t8")), HarnessPart.CORRECT, "t9; t8"),
        (Progressed(verdict="finish", reasons=("known",)), HarnessPart.CORRECT, "known"),
        (Replanned(subtasks=(TASK,), reasons=("t1",), refused=("t7",)), HarnessPart.CORRECT, "t7"),
        (Replanned(subtasks=(TASK,), empty=True), HarnessPart.CORRECT, "stayed"),
        (Forced(mode=Mode.EVENT, reason="stuck"), HarnessPart.CORRECT, "stuck"),
        (RoundClosed(subtasks=(), tokens=1, warning="last"), HarnessPart.CORRECT, "last"),
        (Failed(where="cite", message="no m9"), HarnessPart.CORRECT, "no m9"),
        (TimeUp(look=1), HarnessPart.CORRECT, "time"),
    ],
)
def test_each_part_of_the_harness_says_what_it_did(
    event: Event, part: HarnessPart, named: str
) -> None:
    (one,) = harness_remarks(event)
    assert one.part is part
    assert named in one.text


def test_an_assessment_names_what_it_settles_and_what_not() -> None:
    settled = Resolution(subtask="t1", answer="a gate", refs=("m1", "m2"))
    output = Assessed(
        increment=1, low=False, saturated=True, resolved=(settled,), refused=("t2 has none",)
    )
    assert {one.part for one in harness_remarks(output)} == {HarnessPart.VERIFY}
    _, saturated, resolved, refused = (one.text for one in harness_remarks(output))
    assert "saturated" in saturated
    assert "m1, m2" in resolved
    assert refused == "t2 has none"


def test_a_stop_says_that_what_follows_is_only_the_best_so_far() -> None:
    (one,) = harness_remarks(Interrupted())
    assert "best answer so far" in one.text


@pytest.mark.parametrize(
    "event",
    [
        SkillsRouted(),
        Planned(subtasks=(TASK,)),
        Progressed(verdict="go", reasons=("fine",)),
        RoundOpened(subtask="t1", text="x", attempt=1),
        RoundClosed(subtasks=(), tokens=1),
        Acted(action=SEARCH),
        ModelCalled(purpose="act", model="m", request="h"),
    ],
)
def test_where_the_harness_did_nothing_it_says_nothing(event: Event) -> None:
    assert list(harness_remarks(event)) == []


def test_remarks_are_those_of_the_round_and_0_is_before_the_first() -> None:
    shown = opened(
        Planned(subtasks=(TASK,), dropped=("t9",)),
        Guarded(round=1, accepted=True),
        found(1),
        Guarded(round=2, accepted=False, rule="format", complaint="no action"),
    )
    assert [one.part for one in round_remarks(shown, 0)] == [HarnessPart.CORRECT]
    assert [one.part for one in round_remarks(shown, 1)] == [
        HarnessPart.CONSTRAIN,
        HarnessPart.INFORM,
    ]
    assert [one.text for one in round_remarks(shown, 2)] == [
        "refused by the rule 'format': no action"
    ]
    assert round_remarks(shown, 3) == []


def closed(number: int, *subtasks: Subtask) -> RoundClosed:
    return RoundClosed(round=number, subtasks=subtasks, tokens=1)


def test_the_ledger_marks_all_that_is_new_since_the_round_before() -> None:
    first = TASK.model_copy(
        update={"state": SubtaskState.PARTIAL, "attempts": 1, "evidence": ("m1", "m2")}
    )
    second = first.model_copy(
        update={"state": SubtaskState.RESOLVED, "evidence": ("m1", "m2", "m3"), "answer": "a gate"}
    )
    third = second.model_copy(update={"text": "what Ann shuts", "answer": None})
    shown = opened(
        Planned(subtasks=(TASK,)),
        closed(1, first, OTHER),
        closed(2, second, OTHER),
        closed(3, third, OTHER),
    )

    def marks(number: int) -> list[list[str]]:
        return [marks for _, marks in ledger_changes(shown, number)]

    assert marks(0) == [["new"]]
    assert marks(1) == [["pending -> partial", "attempt 1", "+2 evidence"], ["new"]]
    assert marks(2) == [["partial -> resolved", "+1 evidence", "answered"], []]
    assert marks(3) == [["reworded", "answer withdrawn"], []]
    assert [one for one, _ in ledger_changes(shown, 3)] == [third, OTHER]


def test_a_fork_has_the_ledger_that_it_went_on_from() -> None:
    start = {"ledger": {"subtasks": [plain(TASK), plain(OTHER)]}}
    fork = Forked(round=1, parent="bb22", at=2, edit=ForkEdit(), start=start)
    shown = opened(Planned(subtasks=(TASK,)), fork)
    assert [one for one, _ in ledger_changes(shown, 1)] == [TASK, OTHER]


def rounds(*events: Event) -> str:
    start = RoundOpened(round=1, subtask="t1", text=TASK.text, attempt=1)
    return round_headline(History(ROW, [start, *events]), 1)


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("plain words", "plain words"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "image", "sha256": "0123456789abcdef" * 4}], "[image 0123456789ab]"),
        ([{"text": "see"}, {"sha256": "ff"}], "see\n[image ff]"),
        ([{"type": "image"}], "[image ]"),
        ([], ""),
    ],
)
def test_a_recorded_message_as_words(content: object, output: str) -> None:
    assert message_text({"role": "user", "content": content}) == output


def test_a_round_that_is_not_there_has_only_its_number() -> None:
    assert round_headline(History(ROW, []), 4) == "Round 4"
