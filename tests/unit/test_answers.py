"""The final answer: confidence from the ledger, moments in order, names for tags, fallbacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import RunBudget
from agent.reasoners.port import DecisionContext
from agent.recorder import Recorder
from agent.run_context import RunContext
from agent.state import State, plain
from domain.asking import Evidence, Ledger, Question, Subtask, SubtaskState
from domain.ledger import confidence
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from nodes.finish import NOBODY, SHOWN, certainty, fallback, raw_confidence, retrieved, with_names
from strategies.homer.strategy import STRATEGY
from tests.support.machine import VIDEO, ScriptedMemory, ScriptedReasoner, evidence, found

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
