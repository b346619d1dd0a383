"""What goes wrong in a round, and what the harness does about it: the paper's table of cases.

Inform, constrain, verify and correct, each case a row, each row run through the whole machine.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent.reasoners.port import Assessment, DecisionContext, Unreadable
from domain.asking import Action, Mode, SubtaskState
from domain.ledger import SubtaskDraft
from domain.settings import AskSettings
from domain.trajectory import (
    Assessed,
    Ended,
    EvidenceRetrieved,
    Guarded,
    Progressed,
    RoundClosed,
    RoundOpened,
)
from tests.support.in_memory_machine import play
from tests.support.machine import (
    Ran,
    ScriptedMemory,
    answer,
    claimed,
    evidence,
    found,
    fresh,
    search,
    varied,
)

FACTS = tuple(SubtaskDraft(text=f"fact {i}") for i in range(4))
SAME = found(evidence(1), evidence(2))
NOTHING = found(evidence(1, score=0.1), focus=None, close=False)
PATIENT = AskSettings(saturated_after=20, empty_rounds=20)


def asked(memory: list[Any] | None = None, **scripts: Any) -> Ran:
    return play(ScriptedMemory(memory or fresh(14)), **scripts)


def turns(ran: Ran, name: str) -> list[DecisionContext]:
    return [turn for made, turn in ran.reasoner.turns if made == name]


# Inform


def test_the_same_segment_again_only_what_is_new_is_reported() -> None:
    more = found(evidence(1), evidence(3, "the lecturer leaves"))
    ran = asked([SAME, more, found(evidence(1), focus=2)])
    first, second, third = turns(ran, "conclude")[0].steps
    assert "as before" not in first.card
    assert "as before" in second.card
    assert "the lecturer leaves" in second.card
    assert "Ann opens the door" not in second.card
    assert "Ann opens the door" in third.card


# Constrain


@pytest.mark.parametrize(
    ("bad", "rule", "output"),
    [
        (Unreadable("there is no JSON object"), "format", "no JSON"),
        (Action(kind="search", query="two words"), "mode", "event, video, neighbor, keyframe"),
        (search("Where was the door opened"), "query", "not as a question"),
        (search(" ", Mode.NEIGHBOR), "query", "label"),
        (answer("the harbour", "m1"), "option", "A to C"),
        (answer("A"), "citation", "Cite"),
        (answer("", missing=True), "not in memory", "options"),
    ],
)
def test_a_refused_reply_is_asked_again_with_why(bad: Any, rule: str, output: str) -> None:
    ran = asked(options=("a red door", "a gate", "a window"), act=[varied, bad, varied])
    second = [e for e in ran.of(Guarded) if e.round == 2]
    assert [(e.accepted, e.rule) for e in second] == [(False, rule), (True, None)]
    assert output in second[0].complaint
    assert turns(ran, "act")[2].complaint == second[0].complaint
    assert turns(ran, "act")[3].complaint == ""
    assert [e.round for e in ran.of(EvidenceRetrieved)][:3] == [1, 2, 3]


def test_after_two_retries_the_harness_searches_by_itself() -> None:
    ran = asked(act=[Unreadable("nothing there")] * 9)
    first = [e for e in ran.of(Guarded) if e.round == 1]
    assert [e.accepted for e in first] == [False, False, False, True]
    assert all(e.evidence for e in ran.of(EvidenceRetrieved))
    assert all(turn.complaint == "" for turn in turns(ran, "assess"))
    assert ran.asked.answer.citations


@pytest.mark.parametrize(
    ("plan", "rounds", "settings"),
    [
        (FACTS, 10, AskSettings()),
        (FACTS, 4, AskSettings(rounds=4)),
        (FACTS[:1], 3, AskSettings()),
        (FACTS[:1], 2, AskSettings(attempts=2)),
    ],
)
def test_rounds_are_few(plan: tuple[SubtaskDraft, ...], rounds: int, settings: AskSettings) -> None:
    ran = asked(plan=[plan], settings=settings)
    assert ran.asked.rounds == rounds
    assert max(e.attempt for e in ran.of(RoundOpened)) <= settings.attempts
    assert ran.asked.answer.citations


# Verify


@pytest.mark.parametrize(
    ("modes", "low"),
    [
        ([Mode.EVENT, Mode.EVENT], [False, True]),
        ([Mode.EVENT, Mode.VIDEO, Mode.VIDEO], [False, False, True]),
        ([Mode.EVENT, Mode.KEYFRAME, Mode.KEYFRAME], [False, False, True]),
        ([Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME, Mode.EVENT], [False, False, False, True]),
    ],
)
def test_nothing_new_is_low_but_for_first_closer_look(modes: list[Mode], low: list[bool]) -> None:
    acts = [search(f"word{i}a word{i}b", mode) for i, mode in enumerate(modes)]
    ran = asked([SAME], plan=[FACTS], act=acts, settings=PATIENT)
    assert [e.low for e in ran.of(Assessed)][: len(low)] == low


def test_a_segment_seen_before_must_give_twice_as_much() -> None:
    known = "alpha beta gamma delta epsilon zeta eta theta"
    for focus, low in ((1, True), (2, False)):
        first = found(evidence(1, known), focus=1)
        again = found(evidence(3, f"{known} iota kappa"), focus=focus)
        second = asked([first, again], plan=[FACTS], settings=AskSettings(rounds=2)).of(Assessed)[1]
        assert second.increment == 0.2
        assert second.low is low


def test_two_low_rounds_in_a_row_are_saturation_one_good_one_between_is_not() -> None:
    ran = asked([SAME, SAME, SAME], plan=[FACTS])
    assert [e.saturated for e in ran.of(Assessed)][:3] == [False, False, True]
    new = found(evidence(5, "iota kappa lambda"), focus=5)
    ran = asked([SAME, SAME, new, SAME, new], plan=[FACTS], settings=AskSettings(rounds=4))
    assert not any(e.saturated for e in ran.of(Assessed))


# Correct


@pytest.mark.parametrize(
    ("modes", "suggested", "silent"),
    [
        ([Mode.EVENT] * 3, ["mode video", "mode neighbor", "mode keyframe"], ["mode event"]),
        ([Mode.EVENT, Mode.VIDEO, Mode.VIDEO, Mode.VIDEO], ["mode keyframe"], ["mode video"]),
    ],
)
def test_grace_rounds_suggest(modes: list[Mode], suggested: list[str], silent: list[str]) -> None:
    acts = [search(f"word{i}a word{i}b", mode) for i, mode in enumerate(modes)]
    ran = asked([SAME], plan=[FACTS], act=[*acts, varied])
    (at,) = [e.round for e in ran.of(RoundClosed) if "grace" in e.warning]
    hints = " ".join(next(t.hints for t in turns(ran, "act") if t.round == at + 1))
    assert all(words in hints for words in suggested)
    assert not any(words in hints for words in silent)


@pytest.mark.parametrize("finds", [[SAME], [NOTHING]])
def test_saturated_again_after_the_grace_round_is_the_end(finds: list[Any]) -> None:
    ran = asked(finds, plan=[FACTS])
    warned = [e.round for e in ran.of(RoundClosed) if e.warning]
    assert len(warned) == 2
    assert ran.asked.rounds == warned[1] + 1
    assert [t.final for t in turns(ran, "act")][-1]
    assert ran.of(Ended)[0].why == "the search gives nothing new"


@pytest.mark.parametrize(
    ("finds", "plan", "reason", "after"),
    [
        (fresh(9), FACTS[:1], "t1 used all its attempts unresolved", 3),
        ([SAME], FACTS, "2 rounds brought no new evidence", 3),
        ([found(evidence(i, f"new{i} words{i}")) for i in range(1, 9)], FACTS,
         "3 rounds stayed on one segment", 3),
    ],
)  # fmt: skip
def test_the_plan_is_repaired_when(
    finds: list[Any], plan: tuple[SubtaskDraft, ...], reason: str, after: int
) -> None:
    ran = asked(finds, plan=[plan], settings=PATIENT)
    asks = [e for e in ran.of(Progressed) if e.verdict == "replan"]
    assert next(e for e in asks if reason in e.reasons).round == after


def test_evidence_against_an_answer_opens_its_subtask_again() -> None:
    ran = asked(plan=[FACTS[:2]], assess=[claimed, Assessment(reopened=("t1",)), claimed])
    assert [e.subtask for e in ran.of(RoundOpened)][:3] == ["t1", "t2", "t1"]
    second = ran.of(RoundClosed)[1].subtasks[0]
    assert (second.state, second.answer) == (SubtaskState.PARTIAL, None)
    assert second.evidence
