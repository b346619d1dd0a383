"""How answers, citations, rounds and portraits of videos read."""

from __future__ import annotations

from typing import Any

import pytest

from cli.answers import answered_lines, citation_line
from cli.portrait import SHOWN_LINES
from cli.render import render
from domain.asking import Action, Answer, Citation, Evidence, Mode, Question, Subtask
from domain.calls import CallTotals
from domain.media import Box, SeenObject, Video
from domain.memories import Edge, Relation, Segment
from domain.moments import Answered, Moment
from domain.people import KnownName, PersonOfVideo
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
from library.memory import ShownClip, VideoDetails

VIDEO = "0123456789abcdef"
QUESTION = Question(text="Where?", videos=(VIDEO,), options=("Paris", "Berlin"))
CITED = Moment(ref="m7", title="talk", span=TimeSpan.of(61_000, 75_500), text="in Paris")
FOUND = Evidence(
    ref="m7", video=VIDEO, span=TimeSpan.of(61_000, 75_500), text="in Paris", score=0.8
)
TASK = Subtask(id="t1", text="find the place")
SETTLED = Resolution(subtask="t1", answer="Paris", refs=("m7", "k2"))


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
    assert "  searched: all" in list(answered_lines(given(not_in_memory=True, searched=("all",))))


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


def line(number: int, text: str = "a word") -> Moment:
    span = TimeSpan.of(number * 1000, number * 1000 + 500)
    return Moment(ref=f"m{number + 1}", span=span, kind="episodic", source="said", text=text)


def clip(index: int, *lines: Moment, state: str = "done", error: str | None = None) -> ShownClip:
    span = TimeSpan.of(index * 30_000, (index + 1) * 30_000)
    return ShownClip(index=index, span=span, state=state, error=error, lines=lines)


def segment(number: int, label: str) -> Segment:
    span = TimeSpan.of(0, 30_000)
    return Segment(
        id=number, video=VIDEO, number=number, label=label, summary="", clips=(0,), span=span
    )


def edge(explicit: bool) -> Edge:
    return Edge(
        id=1,
        source=1,
        target=2,
        relation=Relation.CAUSES,
        explicit=explicit,
        confidence=0.7,
        rationale="because",
    )


def portrait(**changes: Any) -> VideoDetails:
    video = Video(
        id=VIDEO, title="talk\x1b[31m", path=None, duration_ms=60_000, width=640, height=360
    )
    person = PersonOfVideo(
        video=VIDEO,
        title="talk",
        number=1,
        label="Omar",
        tags=("<face_0>", "<voice_2>"),
        names=(KnownName(name="Omar", source="read", from_clip=0),),
    )
    plain = VideoDetails(
        video=video,
        state="done",
        error=None,
        models={},
        last_clip=1,
        clips=(clip(0, line(1)), clip(1)),
        people=(person,),
        segments=(segment(1, "Opening"), segment(2, "Talk")),
        edges=(edge(explicit=True),),
    )
    return plain.model_copy(update=changes)


def shown(capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    render(portrait(**changes), json=False)
    return capsys.readouterr().out.splitlines()


def test_a_portrait_reads_from_the_whole_to_the_clips(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == [
        "talk [31m  0123456789abcdef  1:00  done",
        "  640x360, with sound, profile local",
        "  images are found by descriptions and words of their time (no image-text model)",
        "people",
        "  Omar  face_0 voice_2  Omar (read)",
        "segments",
        "  0:00-0:30  Opening  [s1]",
        "    causes Talk (said so)",
        "  0:00-0:30  Talk  [s2]",
        "clip 0  0:00-0:30",
        "  0:01  said: a word  [m2]",
        "clip 1  0:30-1:00",
    ]


FAILED_CLIP = clip(1, state="failed", error="no\nanswer").model_copy(update={"attempts": 3})
GIVEN_UP = FAILED_CLIP.model_copy(update={"given_up": True})
COST = CallTotals(calls=3, failed=1, tokens_in=900, tokens_out=80, cost_usd=0.0123)
DEAR = {"cost": COST, "seconds": 4.26}
SPENT = "3 calls (1 failed), 900+80 tokens, $0.0123, 4.3 s"
BUDGETED = clip(0).model_copy(update={"budget": 60_000, "left_out": ("6 of 8 faces", "a cup")})
CUP = SeenObject(time_ms=1, label="cup", score=0.9, box=Box(x0=0, y0=0, x1=1, y1=1))
FILM = portrait().video
MANY = clip(0, *(line(number) for number in range(SHOWN_LINES + 3)))


@pytest.mark.parametrize(
    ("changes", "output"),
    [
        ({"edges": (edge(explicit=False),)}, "causes Talk (0.70)"),
        ({"clips": (clip(0), FAILED_CLIP)}, "failed (3x; the next homer ingest tries it again)"),
        ({"clips": (clip(0), GIVEN_UP)}, "failed (3x; homer ingest --again tries it again)"),
        ({"clips": (clip(0), FAILED_CLIP)}, "no answer"),
        ({"state": "failed", "error": "1 clips are left"}, "  1 clips are left"),
        ({"clips": (clip(0).model_copy(update=DEAR),)}, f"clip 0  0:00-0:30  [{SPENT}]"),
        (DEAR, f"took {SPENT}"),
        ({"clips": (BUDGETED,)}, "(at most 60000 tokens without 6 of 8 faces, a cup)"),
        ({"models": {"images": "clip:tiny"}}, "(clip:tiny)"),
        ({"video": FILM.model_copy(update={"subtitles": (".en.srt", "2 chapters")})}, "2 chapters"),
        ({"clips": (clip(0).model_copy(update={"objects": (CUP,)}),)}, "  seen: a cup"),
        ({"last_clip": 0}, "as of clip 0 of 2"),
        ({"clips": (MANY,)}, "and 3 more lines"),
        ({"video": FILM.model_copy(update={"has_video": False})}, "no picture, with sound"),
    ],
)
def test_a_portrait_has_what_there_is(
    changes: dict[str, Any], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output in "\n".join(shown(capsys, **changes))
    assert output not in "\n".join(shown(capsys))
