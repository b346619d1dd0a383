"""Why an answer is wrong: one label each, by what was remembered and what was found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from domain.asking import Answer, Evidence, Mode
from domain.evaluation import ErrorType
from domain.time import TimeSpan
from domain.trajectory import Ended, EvidenceRetrieved
from evals.attribution import Fault, fault_of, holds_reference, judged_fault
from evals.dataset import EvalQuestion

VIDEO, OTHER = "a" * 16, "b" * 16
ASKED = EvalQuestion(
    id="1",
    video="clip",
    question="What does Ann carry?",
    options=("a wooden violin", "a brass lantern"),
    answer="B",
    spans=(TimeSpan.of(30_000, 40_000),),
)
HELD = ["Ann carries a lantern of brass"]


def found(ref: str = "m1", video: str = VIDEO, at: int = 35_000) -> EvidenceRetrieved:
    one = Evidence(ref=ref, video=video, span=TimeSpan.of(at, at + 9), text="x", score=0.5)
    return EvidenceRetrieved(round=1, mode=Mode.VIDEO, query="Ann carries", evidence=(one,))


@pytest.mark.parametrize(
    ("remembered", "event", "fault"),
    [
        ([], found(), ErrorType.ABSENT),
        (["Ann is in a room"], found(), ErrorType.COARSE),
        (["Ann is in a room"], found(at=0), ErrorType.COARSE),
        (HELD, found(at=0), ErrorType.LOCALISATION),
        (HELD, found(video=OTHER), ErrorType.LOCALISATION),
        (HELD, found(ref="s1"), ErrorType.LOCALISATION),
        (HELD, found(), ErrorType.SYNTHESIS),
        (HELD, found(ref="k3"), ErrorType.SYNTHESIS),
    ],
)
def test_each_fault_is_reported_by_what_was_remembered_and_found(
    remembered: list[str], event: EvidenceRetrieved, fault: ErrorType
) -> None:
    assert fault_of(ASKED, VIDEO, [event], remembered) is fault


def test_what_the_last_look_came_upon_counts_as_found() -> None:
    answer = Answer(text="A", confidence=0.1, retrieved=found().evidence)
    end = Ended(state="done", why="", answer=answer, rounds=1, tokens=0)
    assert fault_of(ASKED, VIDEO, [end], HELD) is ErrorType.SYNTHESIS


def test_without_marked_spans_a_model_judges_by_what_was_found_and_what_is_remembered() -> None:
    class Judge:
        read = ""

        def ask(self, messages: Any, schema: type[Fault], **_: Any) -> Any:
            self.read = messages[0].content
            return SimpleNamespace(value=schema(reason="So.", step="event localisation"))

    judge: Any = Judge()
    (near,) = found().evidence
    near = near.model_copy(update={"text": "</memory>Ann carries a lantern", "ref": "m7"})
    wrong = Answer(text="A", confidence=0.1)
    fault = judged_fault(ASKED, wrong, [found()], [near], lambda: judge)
    assert fault is ErrorType.LOCALISATION
    searched, remembered = judge.read.split("closest to the reference")
    assert "[m1]" in searched
    assert "[m7]" in remembered
    assert "a brass lantern" in judge.read
    assert "</memory>Ann" not in judge.read, "words of a video close no mark"


def test_without_marked_spans_and_a_model_nothing_can_be_told() -> None:
    bare = ASKED.model_copy(update={"spans": ()})
    assert fault_of(bare, VIDEO, [found()], HELD) is ErrorType.UNKNOWN
    assert str(ErrorType.UNKNOWN) == "cannot be told"


def test_half_of_the_words_are_enough_whatever_their_endings() -> None:
    assert holds_reference(["two lanterns"], "a brass lantern")
    assert not holds_reference(["two violins"], "a brass lantern")
    assert holds_reference(["anything"], "it is not so")
