"""How answers, citations and rounds read."""

from __future__ import annotations

from typing import Any

import pytest

from cli.answers import answered_lines, citation_line
from domain.asking import Action, Answer, Citation, Evidence, Mode, Question, Subtask
from domain.moments import Answered, Moment
from domain.time import TimeSpan
from domain.trajectory import (
    Acted,
    Assessed,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    ForkEdit,
    Guarded,
    ModelCalled,
    PlanLine,
    Planned,
    Resolution,
    RoundClosed,
    RoundOpened,
)
from graphs.ask_result import AskResult, answer_json
from library.answers import answer_line, event_lines

VIDEO = "0123456789abcdef"
QUESTION = Question(text="Where?", videos=(VIDEO,), options=("Paris", "Berlin"))
CITED = Moment(ref="m7", title="talk", span=TimeSpan.of(61_000, 75_500), text="in Paris")
FOUND = Evidence(
    ref="m7", video=VIDEO, span=TimeSpan.of(61_000, 75_500), text="in Paris", score=0.8
)
TASK = Subtask(id="t1", text="find the place")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (Answer(text="In Paris", confidence=0.5), "In Paris"),
        (Answer(text="Paris", option="A", confidence=0.5), "A. Paris"),
        (Answer(text="B", option="B", confidence=0.5), "B. Berlin"),
        (Answer(text="They met there", option="B", confidence=0.5), "B. Berlin (They met there)"),
        (
            Answer(text="<voice_0>: it rains, says <character_3>", confidence=0.5),
            "An unnamed speaker: it rains, says person 3",
        ),
        (Answer(text="two\nlines\x1b[0m", confidence=0.5), "two lines [0m"),
    ],
)
def test_the_answer_names_the_option_it_chose(answer: Answer, line: str) -> None:
    assert answer_line(answer, QUESTION) == line


def test_people_without_a_name_are_reported_in_words_and_kept_as_tags_for_machines() -> None:
    said = Citation(
        ref="m7", video=VIDEO, span=CITED.span, text="<voice_1>: on <face_2>'s table", clip=2
    )
    line = citation_line(CITED.model_copy(update={"text": said.text}))
    assert "An unnamed speaker: on an unnamed person's table" in line
    answer = Answer(text="<voice_1>: here", confidence=0.5, citations=(said,))
    made = answer_json(AskResult("ab12", answer, 2, 0, 1.0))
    assert made["answer"] == "<voice_1>: here"
    assert made["citations"][0]["text"] == "<voice_1>: on <face_2>'s table"


def test_long_words_of_a_citation_are_cut() -> None:
    line = citation_line(CITED.model_copy(update={"ref": "s1", "text": "word " * 100}))
    assert "...  (talk) [s1]" in line
    assert len(line) < 220


def retrieved(**more: Any) -> EvidenceRetrieved:
    return EvidenceRetrieved(**{"mode": Mode.VIDEO, "query": "q", "evidence": (FOUND,)} | more)


SETTLED = Resolution(subtask="t1", answer="Paris", refs=("m7", "k2"))


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (Planned(subtasks=(TASK,)), ["plan t1: find the place"]),
        (RoundOpened(round=2, subtask="t1", text="find\nit", attempt=1), ["round 2: t1: find it"]),
        (Guarded(accepted=True), []),
        (Guarded(accepted=False, rule="r", complaint="say more"), ["  refused (r): say more"]),
        (retrieved(), ["  video 'q': 1 found, best 1:01-1:15 (0.80)"]),
        (retrieved(nothing_close=True), ["  video 'q': nothing close"]),
        (retrieved(evidence=(), refused="no such label"), ["  video 'q': no such label"]),
        (
            Assessed(increment=1, low=False, saturated=False, resolved=(SETTLED,)),
            ["  t1 resolved: Paris [m7] [k2]"],
        ),
        (RoundClosed(subtasks=(TASK,), tokens=3), []),
        (RoundClosed(subtasks=(TASK,), tokens=3, warning="last round"), ["  last round"]),
        (Forced(mode=Mode.VIDEO, reason="locked on"), ["  next: video, because locked on"]),
        (Failed(where="act", message="no\nreply"), ["  act failed: no reply"]),
        (Acted(action=Action(kind="answer", answer="x")), []),
        (
            ModelCalled(purpose="act", model="m", request="h", tokens_in=9, tokens_out=4, ms=1250),
            ["  act: m: 9 tokens in, 4 out, 1.2 s"],
        ),
    ],
)
def test_events_that_say_something_new_are_a_line(event: Any, lines: list[str]) -> None:
    assert list(event_lines(event)) == lines


def given(**more: Any) -> Answered:
    """An answer, as doors show it."""
    made = {
        **dict.fromkeys(("option", "chosen", "standing")),
        **dict.fromkeys(("citations", "retrieved", "searched"), ()),
        "id": "abc123",
        "state": "done",
        "answer": "Paris",
        "not_in_memory": False,
        "note": "",
        "confidence": 0.81,
        "confidence_level": "high",
        "rounds": 2,
        "tokens": 0,
    }
    return Answered.model_validate({**made, "seconds": 1.25, **more})


def test_an_answer_is_shown_with_what_it_rests_on() -> None:
    one = given(option="A", chosen="Paris", citations=(CITED,), note="quoted", choice="it was best")
    assert list(answered_lines(one)) == [
        "A. Paris",
        "confidence high (0.81); quoted",
        "strategy: it was best",
        "  1:01-1:15  in Paris  (talk) [m7]",
        "trajectory abc123 (2 rounds, 1.2 s)",
    ]


def test_not_in_memory_says_where_was_searched() -> None:
    lines = answered_lines(given(not_in_memory=True, searched=("all",)))
    assert "  searched: all" in list(lines)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (ForkEdit(), "the round was decided once more"),
        (ForkEdit(profile="gemini"), "profile gemini"),
        (ForkEdit(plan=(PlanLine(text="where"),), evidence=()), "plan: where; finds nothing"),
        (
            ForkEdit(action=Action(kind="search", mode=Mode.VIDEO, query="a red car")),
            "searches video 'a red car'",
        ),
        (ForkEdit(action=Action(kind="answer", answer="a car")), "answers 'a car'"),
    ],
)
def test_a_fork_says_where_it_comes_from_and_what_was_changed(edit: ForkEdit, line: str) -> None:
    output = event_lines(Forked(round=2, parent="3f2a", at=2, edit=edit, start={}))
    assert list(output) == [f"forked from 3f2a at round 2: {line}"]
