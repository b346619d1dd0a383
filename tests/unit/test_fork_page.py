"""What a person changes at a round, and how two trajectories that part read beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import streamlit

from domain.asking import Action, Answer, Evidence, Mode, Question
from domain.errors import InputError
from domain.texts import WORD_JOINER
from domain.trajectory import Acted, Event, EvidenceRetrieved, RoundOpened
from library.rounds import History
from tests.support.machine import VIDEO, evidence
from tests.support.stored_rounds import ROW
from ui import trajectory_tools
from ui.ask import QuestionFields
from ui.trajectory_tools import UNCHANGED, _edited_action, _select_evidence, _show_comparison

MODES = [*Mode]
SEARCH = Action(kind="search", mode=Mode.EVENT, query="a gate", reason="to see")
ANSWER = Action(kind="answer", answer="a gate")


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


def choosing(monkeypatch: pytest.MonkeyPatch, keep: Callable[[list[int]], list[int]]) -> None:
    def chosen(_: str, every: list[int], **_more: object) -> list[int]:
        return keep(every)

    monkeypatch.setattr(streamlit, "multiselect", chosen)


def test_evidence_keeps_its_order_whatever_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuple(evidence(n) for n in (3, 1, 2))
    choosing(monkeypatch, lambda every: every[::-1])
    assert _select_evidence(found) == found
    choosing(monkeypatch, lambda every: [every[2], every[0]])
    assert _select_evidence(found) == (found[0], found[2])
    choosing(monkeypatch, lambda _: [])
    assert _select_evidence(found) == ()


class Part:
    """A part of the page: notes what is written there."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def markdown(self, text: str) -> None:
        self.words.append(text)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every word that is put on the page, in order."""
    words: list[str] = []
    for name in ("write", "caption", "markdown"):
        monkeypatch.setattr(streamlit, name, words.append)
    monkeypatch.setattr(streamlit, "columns", lambda n: [Part(words) for _ in range(n)])
    monkeypatch.setattr(streamlit, "container", lambda border: Part(words))
    return words


def searched(*queries: str, answer: str = "a gate", found: Sequence[Evidence] = ()) -> History:
    """A search of a round for each query, the last of which found something."""
    events = list[Event]()
    for number, query in enumerate(queries, start=1):
        action = Action(kind="search", mode=Mode.EVENT, query=query)
        got = EvidenceRetrieved(round=number, mode=Mode.EVENT, query=query, evidence=tuple(found))
        events += [
            RoundOpened(round=number, subtask="t1", text="what opens", attempt=1),
            Acted(round=number, action=action),
            got,
        ]
    question = Question(text="What opens?", videos=(VIDEO,))
    said = Answer(text=answer, confidence=0.5)
    return History(replace(ROW, question=question, answer=said), events)


def many(count: int) -> tuple[Evidence, ...]:
    return tuple(evidence(n, f"<voice_1>: thing {n}") for n in range(1, count + 1))


@pytest.mark.parametrize(("count", "more"), [(10, None), (11, "and 1 more"), (25, "and 15 more")])
def test_of_what_one_found_ten_are_shown(page: list[str], count: int, more: str | None) -> None:
    _show_comparison(searched("a gate", found=many(count)), searched("a gate"))
    assert len([line for line in page if "An unnamed speaker" in line]) == 10
    assert not any(r"\[m" in line for line in page)
    assert [line for line in page if line.endswith(" more")] == ([more] if more else [])
    assert "Nothing." in page


def test_words_of_a_memory_are_only_words(page: list[str]) -> None:
    odd = evidence(1, "<b>[x](http://y)</b>")
    _show_comparison(searched("a gate"), searched("a gate", found=[odd]))
    assert any(r"\<b\>\[x\]\(" in line.replace(WORD_JOINER, "") for line in page)


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


def test_a_comparison_says_what_is_the_same_and_what_is_not(page: list[str]) -> None:
    _show_comparison(searched("a gate"), searched("a gate"))
    assert page[0] == "Both have the same steps, results and answer."
    assert not any(line.startswith("≠") for line in page)
    page.clear()
    _show_comparison(searched("a gate"), searched("a gate", answer="a door"))
    assert [line for line in page if line.startswith("≠")] == [
        r"≠ Answer\: a gate",
        r"≠ Answer\: a door",
    ]
    _show_comparison(searched("a gate"), searched("a gate", "a wall"))
    assert r"≠ It had ended\." in page
