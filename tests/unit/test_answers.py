"""The final answer: confidence from the ledger, moments in order, names for tags, fallbacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model_calls import RunBudget
from agent.reasoners.port import Assessment, DecisionContext, Unreadable
from agent.recorder import Recorder
from agent.run_context import RunContext
from agent.state import State, plain
from domain.asking import Action, Evidence, Ledger, Mode, Question, Subtask, SubtaskState
from domain.ledger import SubtaskDraft, confidence
from domain.memories import MemoryView, Scope
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
from nodes.finish import NOBODY, SHOWN, certainty, fallback, raw_confidence, retrieved, with_names
from strategies.homer.strategy import STRATEGY
from tests.support.in_memory_machine import play
from tests.support.machine import (
    VIDEO,
    Ran,
    ScriptedMemory,
    ScriptedReasoner,
    answer,
    claimed,
    evidence,
    found,
    fresh,
    search,
    varied,
)

VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))


def task(number: int, *held: str, score: float = 0.8, support: tuple[str, ...] = ()) -> Subtask:
    return Subtask(
        id=f"t{number}",
        text=f"fact {number}",
        evidence=held,
        best_score=score,
        support=support,
        answer="yes" if support else None,
        state=SubtaskState.RESOLVED if support else SubtaskState.PARTIAL,
    )


def test_confidence_is_that_of_the_subtasks_whose_evidence_is_cited() -> None:
    ledger = Ledger(subtasks=(task(1, "m1", "m2", score=0.8), task(2, "m3", score=0.1)))
    assert certainty(ledger, ["m1", "m2"]) == confidence(0.8, 2)
    assert certainty(ledger, ["m1"]) == confidence(0.8, 1)
    both = (confidence(0.8, 1) + confidence(0.1, 1)) / 2
    assert certainty(ledger, ["m1", "m3"]) == pytest.approx(both)


def test_a_resolved_subtask_counts_what_supports_its_answer() -> None:
    ledger = Ledger(subtasks=(task(1, "m1", "m2", "m3", support=("m1", "m2")),))
    assert certainty(ledger, ["m3"]) == confidence(0.8, 2)


def test_an_answer_without_evidence_has_no_confidence() -> None:
    assert certainty(Ledger(subtasks=(task(1, "m1"),)), []) == 0
    assert certainty(Ledger(), ["m1"]) == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), max_size=5))
def test_confidence_is_never_above_95_percent(tasks: list[tuple[float, int]]) -> None:
    made = [
        task(i + 1, *(f"m{n}" for n in range(count)), score=score)
        for i, (score, count) in enumerate(tasks)
    ]
    assert 0 <= certainty(Ledger(subtasks=tuple(made)), [f"m{n}" for n in range(9)]) <= 0.95


def workspace(*retrievals: tuple[Evidence, ...], people: Any = (), note: str = "") -> RunContext:
    memory, reasoner = ScriptedMemory([found()]), ScriptedReasoner()
    reasoner.note = note
    recorder = Recorder(None, "test", lambda *_: None, strategy=STRATEGY)  # type: ignore[arg-type]
    for items in retrievals:
        recorder.add(EvidenceRetrieved(mode="video", query="the door", evidence=items))
    settings = AskSettings()
    return RunContext(
        reasoner, memory, memory.cite, settings, recorder, RunBudget(settings), people
    )


def test_moments_are_the_cited_ones_first_then_by_score_and_time() -> None:
    at = workspace((evidence(5, score=0.9), evidence(3, score=0.9)), (evidence(1, score=0.2),))
    assert [e.ref for e in retrieved(at, ["m1"])] == ["m1", "m3", "m5"]


def test_moments_that_the_reasoner_ranked_keep_its_order() -> None:
    at = workspace((evidence(9, score=0.9),), (evidence(5, score=0.3), evidence(3, score=0.8)))
    assert [e.ref for e in retrieved(at, ["m9"], ["m5", "m3", "m77"])] == ["m5", "m3"]


def test_something_found_twice_counts_with_its_best_score_and_moments_are_limited() -> None:
    many = tuple(evidence(i, score=0.5) for i in range(40))
    shown = retrieved(workspace(many, (evidence(30, score=0.9),)), [])
    assert (shown[0].ref, shown[0].score) == ("m30", 0.9)
    assert len(shown) == SHOWN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<face_1> sees <character_2>", "Ann sees <character_2>"),
        ("<face_1> sees <voice_7>", f"Ann sees {NOBODY}"),
        ("no tags", "no tags"),
        ("a <b> c", "a <b> c"),
    ],
)
def test_known_names_stand_for_tags_and_a_tag_never_shown_is_nobody(text: str, shown: str) -> None:
    assert with_names(text, (("<face_1>", "Ann"),), {"<character_2>"}) == shown


def state(options: tuple[str, ...] = (), *subtasks: Subtask) -> State:
    return {
        "question": plain(Question(text="What does Ann open?", videos=(VIDEO,), options=options)),
        "view": plain(VIEW),
        "ledger": plain(Ledger(subtasks=subtasks)),
        "round": 2,
    }


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ((0.5, 0.3, 0.5), (0.5, 0.6, 0.5)),
        ((0.5, 0.6, 0.1), (0.5, 0.6, 0.9)),
        ((0.2, None, 0.5), (0.6, None, 0.5)),
        ((0.5, None, 0.1), (0.5, None, 0.9)),
        ((0.2, None, None), (0.6, None, None)),
    ],
)
def test_confidence_rises_with_the_ledgers_the_share_and_the_support(
    less: tuple[float, float | None, float | None], more: tuple[float, float | None, float | None]
) -> None:
    assert 0 <= raw_confidence(*less) < raw_confidence(*more) <= 1


@given(st.floats(0, 1), st.none() | st.floats(0, 1), st.none() | st.floats(0, 1))
def test_raw_confidence_is_a_share(sure: float, share: float | None, best: float | None) -> None:
    assert 0 <= raw_confidence(sure, share, best) <= 1


def turn(*items: Evidence, options: tuple[str, ...] = ()) -> DecisionContext:
    asked = Question(text="What does Ann open?", videos=(VIDEO,), options=options)
    refs = tuple(item.ref for item in items)
    held = Ledger(subtasks=(Subtask(id="t1", text="the door", evidence=refs),))
    return DecisionContext(question=asked, view=VIEW, ledger=held, evidence=items)


def test_the_fallback_is_the_option_whose_words_the_evidence_holds() -> None:
    held = evidence(1, "Ann opens the door of the house")
    options = ("a green window", "the door", "the door of the garden")
    made = fallback(turn(held, evidence(2, "rain"), options=options))
    assert (made.option, made.refs) == ("B", ("m1", "m2"))
    assert fallback(turn(options=options)).option == "A"


def test_the_fallback_of_an_open_question_quotes_the_best_evidence_or_says_it_is_missing() -> None:
    made = fallback(turn(*[evidence(i, f"line {i}", score=i / 10) for i in range(1, 6)]))
    assert made.refs == ("m5", "m4", "m3")
    assert made.text == "line 5 line 4 line 3"
    assert fallback(turn()).not_in_memory


# What goes wrong in a round, and what the harness does about it: the paper's table of cases.


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
