"""What code lets into the skill library."""

from __future__ import annotations

from typing import Any

import pytest

from domain.skills import Skill
from skills.writer import INSTRUCTION, review
from tests.support.skills import a_skill


def said(*instructions: str, **more: Any) -> Skill:
    return a_skill(instructions=instructions, **more)


@pytest.mark.parametrize(
    "line",
    [
        "Find both events first, then compare their times.",
        "Search in mode EVENT for the whole, then VIDEO for the words.",
        "If two searches bring nothing, look at the images (KEYFRAME).",
        "Say how sure you are: 2 of 3 sources must agree.",
        "Why-questions need the cause AND the effect.",
    ],
)
def test_plain_advice_passes(line: str) -> None:
    assert review(said(line)) == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Use <think> before you answer.", "syntax"),
        ("Cite [m12] always.", "syntax"),
        ('Reply with {"action": "answer"}.', "syntax"),
        ("Call search_all(query) first.", "syntax"),
        ("Set max_rounds to twenty.", "syntax"),
        ("Search with TIMELINE first.", "no search mode"),
        ("The answer is B.", "which option is right"),
        ("Prefer option C when unsure.", "which option is right"),
        ("   ", "empty"),
        ("x" * (INSTRUCTION + 1), "longer than"),
    ],
)
def test_what_is_no_plain_advice_is_refused_and_why(line: str, fault: str) -> None:
    (complaint,) = review(said(line))
    assert fault in complaint


def test_all_of_a_skill_is_reviewed() -> None:
    assert review(a_skill(description="Questions with <tags>"))
    assert review(a_skill(triggers=("before", "{after}")))
    long = tuple("word " * 47 + str(i) for i in range(5))
    assert review(said(*long)) == ()
    assert "tokens" in review(said(*(f"{line} and" for line in long)))[0]


@pytest.mark.parametrize("line", ["Ask what Ann Lee did.", "ann lee's words matter", "ANN LEE!"])
def test_a_name_is_one_where_it_is_written_as_one(line: str) -> None:
    assert bool(review(said(line), names=["Ann Lee", "Will"])) is ("Ann Lee" in line)
    assert review(said("You will need both times."), names=["Will"]) == ()


def test_an_answer_of_a_question_is_no_advice() -> None:
    assert review(said("It was The Green Door in the end."), answers=["the green door"])
    assert review(said("Look for red things."), answers=["red"]) == ()
