"""What a person changes at a round, and how two trajectories that part read beside each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import streamlit

from domain.asking import Action, Answer, Evidence, Mode, Question
from domain.errors import InputError
from tests.support.machine import VIDEO, evidence
from ui import trajectory_tools
from ui.question_form import QuestionFields
from ui.trajectory_tools import (
    UNCHANGED,
    _edited_action,
    _select_evidence,
    _step_text,
    show_difference,
)
from views.comparison import ComparedRound, Difference, FirstDivergence

MODES = [*Mode]
SEARCH = Action(kind="search", mode=Mode.EVENT, query="a gate", reason="to see")
ANSWER = Action(kind="answer", answer="a gate")
ASKED = Question(text="What opens?", videos=(VIDEO,), options=("a gate", "a door"))


@pytest.mark.parametrize("query", ["a gate", " a gate ", "", "  "])
def test_an_act_that_nobody_changed_is_left_alone(query: str) -> None:
    assert _edited_action(SEARCH, query, UNCHANGED, MODES) is None


@pytest.mark.parametrize(
    ("was", "query", "mode", "search"),
    [
        (SEARCH, "a door", UNCHANGED, (Mode.EVENT, "a door")),
        (SEARCH, " a door ", UNCHANGED, (Mode.EVENT, "a door")),
        (SEARCH, "a gate", "keyframe", (Mode.KEYFRAME, "a gate")),
        (ANSWER, "a gate", UNCHANGED, (Mode.VIDEO, "a gate")),
        (ANSWER, "a gate", "event", (Mode.EVENT, "a gate")),
        (None, "a gate", UNCHANGED, (Mode.VIDEO, "a gate")),
        (None, "a gate", "neighbor", (Mode.NEIGHBOR, "a gate")),
    ],
)
def test_another_query_or_mode_makes_it_a_search(
    was: Action | None, query: str, mode: str, search: tuple[Mode, str]
) -> None:
    made = _edited_action(was, query, mode, MODES)
    assert made is not None
    assert (made.kind, made.mode, made.query) == ("search", *search)


def test_a_mode_without_a_query_is_no_search() -> None:
    assert _edited_action(ANSWER, "", "event", MODES) is None


def choosing(monkeypatch: pytest.MonkeyPatch, keep: Callable[[list[str]], list[str]]) -> None:
    monkeypatch.setattr(streamlit, "multiselect", lambda _, every, default: keep(every))


def test_evidence_keeps_its_order_whatever_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(evidence(n) for n in (3, 1, 2))
    choosing(monkeypatch, lambda every: every[::-1])
    assert _select_evidence(found) == found
    choosing(monkeypatch, lambda every: [every[2], every[0]])
    assert _select_evidence(found) == (found[0], found[2])
    choosing(monkeypatch, lambda _: [])
    assert _select_evidence(found) == ()


def test_a_round_that_found_nothing_has_nothing_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("there is nothing to choose")

    monkeypatch.setattr(streamlit, "multiselect", asked)
    assert _select_evidence(()) == ()


def step(action: Action | None = None, *seen: str) -> ComparedRound:
    return ComparedRound(round=2, subtask="t1", action=action, seen=seen)


@pytest.mark.parametrize(
    ("one", "seen", "output"),
    [
        (None, False, "It had ended."),
        (None, True, "It had ended."),
        (step(SEARCH, "m1", "s2"), True, "[m1] [s2]"),
        (step(SEARCH), True, "Nothing."),
        (step(SEARCH, "m1"), False, "t1: event 'a gate'"),
        (step(ANSWER), False, "t1: answers a gate"),
        (step(), False, "t1: nothing"),
    ],
)
def test_a_step_in_words(one: ComparedRound | None, seen: bool, output: str) -> None:
    assert _step_text(one, evidence=seen) == output


class Column:
    """A part of the page, or all of it: notes what is written there."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __enter__(self) -> Column:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def write(self, text: str) -> None:
        self.words.append(text)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every word that is put on the page, in order."""
    words: list[str] = []
    for name in ("write", "caption", "markdown", "success"):
        monkeypatch.setattr(streamlit, name, words.append)
    monkeypatch.setattr(streamlit, "columns", lambda n: [Column(words) for _ in range(n)])
    return words


def difference(**output: Any) -> Difference:
    same = {
        "a": "aa11",
        "b": "bb22",
        "same_question": True,
        "same_answer": True,
        "action": None,
        "evidence": None,
        "only_a": (),
        "only_b": (),
        "both": 3,
        "answer_a": Answer(text="a gate", option="A", confidence=0.5),
        "answer_b": None,
    }
    return Difference.model_validate(same | output)


def test_two_that_did_the_same_are_said_to_be_the_same(page: list[str]) -> None:
    show_difference(difference(), ASKED, ASKED)
    assert page[0].startswith("Both have the same actions, evidence and answer")
    assert page.count("The same in every round.") == 2
    assert "Found by both: 3 moments" in page
    assert page[-2:] == [r"A\. a gate", r"Nothing\."]


def test_where_they_part_each_side_says_what_it_did(page: list[str]) -> None:
    parts = FirstDivergence(round=2, a=step(SEARCH, "m1"), b=None)
    show_difference(difference(action=parts, evidence=parts), ASKED, ASKED)
    assert page.count("They diverge at round 2.") == 2
    assert r"t1\: event 'a gate'" in page
    assert r"\[m1\]" in page
    assert page.count(r"It had ended\.") == 2
    assert not page[0].startswith("Both")


def test_another_answer_alone_is_not_the_same(page: list[str]) -> None:
    show_difference(difference(same_answer=False), ASKED, ASKED)
    assert not page[0].startswith("Both")


def many(count: int) -> tuple[Evidence, ...]:
    return tuple(evidence(n) for n in range(1, count + 1))


@pytest.mark.parametrize(("count", "more"), [(10, None), (11, "and 1 more"), (25, "and 15 more")])
def test_of_what_only_one_saw_the_first_ten_are_shown(
    page: list[str], count: int, more: str | None
) -> None:
    show_difference(difference(only_a=many(count)), ASKED, ASKED)
    assert f"Only aa11: {count}" in page
    assert "Only bb22: 0" in page
    assert sum(r"\[m" in line for line in page) == 10
    assert [line for line in page if line.endswith(" more")] == ([more] if more else [])


def test_words_of_a_memory_are_only_words(page: list[str]) -> None:
    odd = evidence(1, "<b>[x](http://y)</b>")
    show_difference(difference(only_b=(odd,)), ASKED, ASKED)
    (line,) = [line for line in page if r"\[m1\]" in line]
    assert r"\<b\>\[x\]\(" in line


@pytest.mark.parametrize(
    ("videos", "text", "options", "as_of", "output"),
    [
        ((VIDEO,), "  ", "", "", "Write a question first"),
        ((), "Who?", "", "", "Choose at least one video"),
        ((VIDEO,), "Who?", "\n".join(map(str, range(27))), "", "at most 26 options"),
        ((VIDEO,), "Who?", "", "noon", "'noon' is not a time"),
    ],
)
def test_what_cannot_be_asked_says_why(
    videos: tuple[str, ...], text: str, options: str, as_of: str, output: str
) -> None:
    with pytest.raises((InputError, ValueError), match=output):
        QuestionFields(tuple(videos), text, options, as_of, "local").question()


def test_a_question_is_taken_as_it_was_meant() -> None:
    made = QuestionFields((VIDEO,), " Who opens? ", " Ann \n\n Bob\n", " 1:05 ", "").question()
    assert made == Question(
        text="Who opens?", videos=(VIDEO,), options=("Ann", "Bob"), as_of_ms=65_000
    )
    assert QuestionFields((VIDEO,), "Who?", "\n \n", " ", "").question().as_of_ms is None
    assert trajectory_tools.UNCHANGED not in [mode.value for mode in Mode]
