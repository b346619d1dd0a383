"""From records to questions: what every reader shares."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.time import TimeSpan
from evals.dataset import EvalQuestion, EvalVideo
from evals.datasets.files import (
    dataset,
    instant,
    letter,
    ms,
    question,
    reject_duplicate_ids,
    video,
    without_labels,
)


def asked(id_: str = "1", **more: Any) -> EvalQuestion:
    return question("here", id=id_, video="v", question="Who?", **more)


@pytest.mark.parametrize(
    ("options", "bare"),
    [
        (["A. Red", "B. Blue"], ("Red", "Blue")),
        (["(A) Red", "(B) Blue"], ("Red", "Blue")),
        (["A) Red", "B) Blue"], ("Red", "Blue")),
        (["A: Red", "B: Blue"], ("Red", "Blue")),
        (["A.Red", "B.Blue"], ("Red", "Blue")),
        (["A", "B"], ("", "")),
        (["Red", "Blue"], ("Red", "Blue")),
        (["A. Red", "C. Blue"], ("A. Red", "C. Blue")),
        (["B. Red", "A. Blue"], ("B. Red", "A. Blue")),
        (["A man", "B movie"], ("A man", "B movie")),
        ([], ()),
    ],
)
def test_letters_are_taken_off_if_every_option_has_its_own(
    options: list[str], bare: tuple[str, ...]
) -> None:
    assert without_labels(options) == bare


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=26))
def test_labelled_options_come_back(options: list[str]) -> None:
    labelled = [f"{letter(n)}. {one.lstrip()}" for n, one in enumerate(options)]
    assert without_labels(labelled) == tuple(one.lstrip() for one in options)


def test_letters_go_by_place() -> None:
    assert [letter(n) for n in (0, 3, 25)] == ["A", "D", "Z"]
    assert letter(26) == "26"
    with pytest.raises(InputError, match="none of the options"):
        asked(options=("x", "y"), answer=letter(2))


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"options": ("x",) * 27}, "here: options: "),
        ({"as_of_ms": -1}, "here: as_of_ms: "),
        ({"answer": "\0"}, "here: the question: .*NUL"),
        ({"types": ("\udfff",)}, "here: the question: .*half a character"),
        ({"id_": ""}, "here: id: "),
    ],
)
def test_a_question_that_cannot_be_is_reported_with_its_place(
    more: dict[str, Any], output: str
) -> None:
    with pytest.raises(InputError, match=output):
        asked(**more)


@pytest.mark.parametrize("name", ["", "\0", "\ud800"])
def test_a_video_that_cannot_be_is_reported_with_its_place(name: str) -> None:
    with pytest.raises(InputError, match="here: "):
        video("here", name=name)


def test_a_type_counts_once() -> None:
    assert asked(types=("a", "b", "a")).types == ("a", "b")


def test_a_video_is_there_once_and_questions_keep_their_order() -> None:
    videos = [EvalVideo(name="v"), EvalVideo(name="w"), EvalVideo(name="v")]
    found = dataset("set", "here", videos, [asked("2"), asked("1")])
    assert [one.name for one in found.videos] == ["v", "w"]
    assert [one.id for one in found.questions] == ["2", "1"]


def test_a_set_without_questions_is_none() -> None:
    with pytest.raises(InputError, match="here holds no question of set"):
        dataset("set", "here", [], [])


@given(st.lists(st.sampled_from(["a", "a#2", "b", "a#3", "b#2#2"]), min_size=1, max_size=12))
def test_no_two_questions_share_an_id(ids: list[str]) -> None:
    found = [one.id for one in dataset("set", "here", [], [asked(one) for one in ids]).questions]
    assert len(set(found)) == len(found) == len(ids)
    assert found[0] == ids[0]
    assert all(output.startswith(one) for output, one in zip(found, ids, strict=True))


def test_ones_own_ids_may_not_come_twice() -> None:
    reject_duplicate_ids("here", [asked("1"), asked("2")])
    with pytest.raises(InputError, match="here: the question id '1' comes twice"):
        reject_duplicate_ids("here", [asked("1"), asked("2"), asked("1")])


def test_times_are_whole_milliseconds() -> None:
    assert (ms(1.0004), ms(1.0006), ms(0)) == (1000, 1001, 0)
    assert instant(5) == TimeSpan.of(5, 1005)
