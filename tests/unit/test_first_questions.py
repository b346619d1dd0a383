"""The forty questions: what counts as right is decided by code, and the set is well-formed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from evals.asking import Batch
from evals.first import FirstQuestion, QuestionSet, RightAnswer, judge, read_first_questions, row


def line(text: str, *cited: tuple[float, float], **more: Any) -> dict[str, Any]:
    output = [{"start_s": a, "end_s": b, "text": ""} for a, b in cited]
    return {"answer": text, "citations": output, "confidence": 0.9, **more}


@pytest.mark.parametrize(
    ("right", "answer", "is_right"),
    [
        (RightAnswer(words=("two|2",)), line("2 voices"), True),
        (RightAnswer(words=("two", "Ann")), line("two of them"), False),
        (RightAnswer(number=(5, 7)), line("[00:02-00:04] about six people"), True),
        (RightAnswer(number=(5, 7)), line("4 people and 6 dogs"), False),
        (RightAnswer(spans_s=((10, 20),)), line("x", (0, 1), (19, 25)), True),
        (RightAnswer(top_s=((10, 20),)), line("x", (0, 1), (19, 25)), False),
        (RightAnswer(every_s=((0, 2), (10, 20))), line("x", (0, 1), (19, 25)), True),
        (RightAnswer(every_s=((0, 2), (10, 20))), line("x", (0, 1)), False),
        (RightAnswer(option="B"), line("two", option="B"), True),
        (RightAnswer(option="B"), line("two", option="A"), False),
        (RightAnswer(declined=True), line("", not_in_memory=True), True),
        (RightAnswer(declined=True), line("red", (0, 1)), False),
        (RightAnswer(words=("red",)), line("", not_in_memory=True), False),
        (RightAnswer(words=("red",), declined=True), line("", not_in_memory=True), True),
        (RightAnswer(words=("red",), declined=True), line("a red one", (0, 1)), True),
        (RightAnswer(words=("red",), declined=True), line("a blue one", (0, 1)), False),
    ],
)
def test_an_answer_is_right_where_all_that_is_marked_holds(
    right: RightAnswer, answer: dict[str, Any], is_right: bool
) -> None:
    assert right.met_by(answer) is is_right


def test_figures_tell_right_declined_wrong_and_wrong_with_high_confidence() -> None:
    rights = [RightAnswer(words=("yes",)), RightAnswer(declined=True), RightAnswer(words=("no",))]
    asked = [
        FirstQuestion(id=str(i), video="a.mp4", kind="who", question="?", right=right)
        for i, right in enumerate(rights)
    ]
    lines: dict[str | int, dict[str, Any]] = {
        "0": line("yes"),
        "1": line("", not_in_memory=True),
        "2": line("yes"),
    }
    batch = Batch(lines, {}, 1.0)
    found = row("who", [judge(one, batch) for one in asked])
    counts = (found.questions, found.right, found.declined, found.wrong, found.sure)
    assert counts == (3, 1, 1, 1, 1)
    assert row("who", [judge(asked[0], Batch({}, {}, 1.0))]).wrong == 1


@pytest.mark.parametrize(("name", "count"), [(QuestionSet.FIRST, 40), (QuestionSet.SEEN, 20)])
def test_the_sets_hold_questions_that_can_be_judged(name: QuestionSet, count: int) -> None:
    asked = read_first_questions(name.path)
    assert len({one.id for one in asked}) == len(asked) == count
    for one in asked:
        assert one.right != RightAnswer(), one.id
        assert all(re.compile(word) for word in one.right.words)
        assert bool(one.options) == bool(one.right.option), one.id


def test_a_file_of_another_form_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('{"questions": [{"id": "a", "video": "../x", "kind": "who"}]}')
    with pytest.raises(InputError, match="holds no first questions"):
        read_first_questions(path)
