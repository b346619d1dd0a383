"""A round opened up, what a person changes at one, and a trajectory as one page of words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import cast

import pytest
import streamlit

from agent.state import plain
from cli.answers import citation_line
from domain.asking import Action, Answer, Citation, Evidence, Mode, Question, Subtask, SubtaskState
from domain.errors import BlobGone, InputError
from domain.media import Video
from domain.moments import Moment
from domain.time import TimeSpan
from domain.trajectory import (
    Acted,
    AnswerProposed,
    Assessed,
    Bound,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    ForkEdit,
    Guarded,
    Interrupted,
    ModelCalled,
    Planned,
    Progressed,
    Replanned,
    Resolution,
    RoundClosed,
    RoundOpened,
    SkillsRouted,
    TimeUp,
)
from library.rounds import History, ShownCall, message_text, round_headline
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from tests.support.machine import VIDEO, evidence
from tests.support.stored_rounds import ROW, TASK
from ui import trajectory_tools
from ui.ask import QuestionFields
from ui.harness_remarks import HarnessPart, harness_remarks, ledger_changes, round_remarks
from ui.trajectory_tools import UNCHANGED, _edited_action, _select_evidence

OTHER = Subtask(id="t2", text="where it leads", depends=("t1",))
ANSWER = Action(kind="answer", answer="a gate")
EVIL = "<script>x()</script>\"'&<b onclick=y>"
FILM = Video(id=VIDEO, title=EVIL, path=None, duration_ms=100_000)
TASK_OF_EXPORTED = Subtask(id="t1", text=EVIL, answer=EVIL)
MODES = [*Mode]
SEARCH_OF_FORK = Action(kind="search", mode=Mode.EVENT, query="a gate", reason="to see")


def found(number: int = 1, **more: object) -> EvidenceRetrieved:
    output = {"mode": Mode.VIDEO, "query": "a gate", "evidence": (evidence(1, score=0.625),)}
    return EvidenceRetrieved.model_validate({"round": number, **output, **more})


def opened(*events: Event) -> History:
    return History(ROW, events)


@pytest.mark.parametrize(
    ("event", "part", "named"),
    [
        (found(), HarnessPart.INFORM, "0.62"),
        (found(images=("a" * 64, "b" * 64)), HarnessPart.INFORM, "2 images"),
        (found(nothing_close=True), HarnessPart.INFORM, "'a gate'"),
        (found(evidence=()), HarnessPart.INFORM, "'a gate'"),
        (found(evidence=(), refused="no label"), HarnessPart.INFORM, "no label"),
        (Bound(subtask="t1", refs=("m1",), best_score=0.5), HarnessPart.INFORM, "t1"),
        (Guarded(accepted=True), HarnessPart.CONSTRAIN, "accepted"),
        (Guarded(accepted=False, rule="r", complaint="c"), HarnessPart.CONSTRAIN, "'r': c"),
        (AnswerProposed(action=ANSWER, accepted=True), HarnessPart.VERIFY, "accepted"),
        (AnswerProposed(action=ANSWER, accepted=False, complaint="c"), HarnessPart.VERIFY, "c"),
        (Assessed(increment=0.125, low=True, saturated=False), HarnessPart.VERIFY, "12%"),
        (Planned(subtasks=(TASK,), dropped=("t9", "t8")), HarnessPart.CORRECT, "t9; t8"),
        (Progressed(verdict="finish", reasons=("known",)), HarnessPart.CORRECT, "known"),
        (Replanned(subtasks=(TASK,), reasons=("t1",), refused=("t7",)), HarnessPart.CORRECT, "t7"),
        (Replanned(subtasks=(TASK,), empty=True), HarnessPart.CORRECT, "stayed"),
        (Forced(mode=Mode.EVENT, reason="stuck"), HarnessPart.CORRECT, "stuck"),
        (RoundClosed(subtasks=(), tokens=1, warning="last"), HarnessPart.CORRECT, "last"),
        (Failed(where="cite", message="no m9"), HarnessPart.CORRECT, "no m9"),
        (TimeUp(look=1), HarnessPart.CORRECT, "time"),
    ],
)
def test_each_part_of_the_harness_says_what_it_did(
    event: Event, part: HarnessPart, named: str
) -> None:
    (one,) = harness_remarks(event)
    assert one.part is part
    assert named in one.text


def test_an_assessment_names_what_it_settles_and_what_not() -> None:
    settled = Resolution(subtask="t1", answer="a gate", refs=("m1", "m2"))
    output = Assessed(
        increment=1, low=False, saturated=True, resolved=(settled,), refused=("t2 has none",)
    )
    assert {one.part for one in harness_remarks(output)} == {HarnessPart.VERIFY}
    _, saturated, resolved, refused = (one.text for one in harness_remarks(output))
    assert "saturated" in saturated
    assert "m1, m2" in resolved
    assert refused == "t2 has none"


def test_a_stop_says_that_what_follows_is_only_the_best_so_far() -> None:
    (one,) = harness_remarks(Interrupted())
    assert "best answer so far" in one.text


@pytest.mark.parametrize(
    "event",
    [
        SkillsRouted(),
        Planned(subtasks=(TASK,)),
        Progressed(verdict="go", reasons=("fine",)),
        RoundOpened(subtask="t1", text="x", attempt=1),
        RoundClosed(subtasks=(), tokens=1),
        Acted(action=Action(kind="search", mode=Mode.VIDEO, query="a gate")),
        ModelCalled(purpose="act", model="m", request="h"),
    ],
)
def test_where_the_harness_did_nothing_it_says_nothing(event: Event) -> None:
    assert list(harness_remarks(event)) == []


def test_remarks_are_those_of_the_round_and_0_is_before_the_first() -> None:
    shown = opened(
        Planned(subtasks=(TASK,), dropped=("t9",)),
        Guarded(round=1, accepted=True),
        found(1),
        Guarded(round=2, accepted=False, rule="format", complaint="no action"),
    )
    assert [one.part for one in round_remarks(shown, 0)] == [HarnessPart.CORRECT]
    output = [one.part for one in round_remarks(shown, 1)]
    assert output == [HarnessPart.CONSTRAIN, HarnessPart.INFORM]
    assert [one.text for one in round_remarks(shown, 2)] == [
        "refused by the rule 'format': no action"
    ]
    assert round_remarks(shown, 3) == []


def closed(number: int, *subtasks: Subtask) -> RoundClosed:
    return RoundClosed(round=number, subtasks=subtasks, tokens=1)


def test_the_ledger_marks_all_that_is_new_since_the_round_before() -> None:
    first = TASK.model_copy(
        update={"state": SubtaskState.PARTIAL, "attempts": 1, "evidence": ("m1", "m2")}
    )
    second = first.model_copy(
        update={"state": SubtaskState.RESOLVED, "evidence": ("m1", "m2", "m3"), "answer": "a gate"}
    )
    third = second.model_copy(update={"text": "what Ann shuts", "answer": None})
    shown = opened(
        Planned(subtasks=(TASK,)),
        closed(1, first, OTHER),
        closed(2, second, OTHER),
        closed(3, third, OTHER),
    )

    def marks(number: int) -> list[list[str]]:
        return [marks for _, marks in ledger_changes(shown, number)]

    assert marks(0) == [["new"]]
    assert marks(1) == [["pending -> partial", "attempt 1", "+2 evidence"], ["new"]]
    assert marks(2) == [["partial -> resolved", "+1 evidence", "answered"], []]
    assert marks(3) == [["reworded", "answer withdrawn"], []]
    assert [one for one, _ in ledger_changes(shown, 3)] == [third, OTHER]


def test_a_fork_has_the_ledger_that_it_went_on_from() -> None:
    start = {"ledger": {"subtasks": [plain(TASK), plain(OTHER)]}}
    fork = Forked(round=1, parent="bb22", at=2, edit=ForkEdit(), start=start)
    shown = opened(Planned(subtasks=(TASK,)), fork)
    assert [one for one, _ in ledger_changes(shown, 1)] == [TASK, OTHER]


def rounds(*events: Event) -> str:
    start = RoundOpened(round=1, subtask="t1", text=TASK.text, attempt=1)
    return round_headline(History(ROW, [start, *events]), 1)


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("plain words", "plain words"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "image", "sha256": "0123456789abcdef" * 4}], "[image 0123456789ab]"),
        ([{"text": "see"}, {"sha256": "ff"}], "see\n[image ff]"),
        ([{"type": "image"}], "[image ]"),
        ([], ""),
    ],
)
def test_a_recorded_message_as_words(content: object, output: str) -> None:
    assert message_text({"role": "user", "content": content}) == output


def test_a_round_that_is_not_there_has_only_its_number() -> None:
    assert round_headline(History(ROW, []), 4) == "Round 4"


def piece(start: int, end: int, video: str = VIDEO) -> Evidence:
    return Evidence(
        ref="m7", video=video, span=TimeSpan.of(start, end), text=EVIL, score=0.5, clip=0
    )


CITED = Citation(ref=EVIL, video=VIDEO, span=TimeSpan.of(5_000, 9_000), text=EVIL)
CALL = ModelCalled(round=1, purpose=EVIL, model=EVIL, request="h", tokens_in=5, ms=1500)
EVENTS: tuple[Event, ...] = (
    Planned(subtasks=(TASK_OF_EXPORTED,)),
    RoundOpened(round=1, subtask=EVIL, text=EVIL, attempt=1),
    Acted(round=1, action=Action(kind="search", mode=Mode.VIDEO, query=EVIL)),
    EvidenceRetrieved(
        round=1,
        mode=Mode.VIDEO,
        query=EVIL,
        evidence=(piece(25_000, 50_000), piece(0, 10, "f" * 16)),
        refused=EVIL,
    ),
    RoundClosed(round=1, subtasks=(TASK_OF_EXPORTED,), tokens=5, warning=EVIL),
)
ASKED = replace(
    ROW,
    question=Question(text=EVIL, videos=(VIDEO,)),
    answer=Answer(text=EVIL, confidence=0.5, citations=(CITED,)),
    profile=EVIL,
)


class Images:
    """Where the store has its images: one of three bytes, or none that can be read."""

    def get(self, sha: str) -> bytes:
        if sha == "gone":
            raise BlobGone("the image is damaged")
        return b"jpg"


class Shelf:
    blobs = Images()


class Tags(HTMLParser):
    """The names of the elements of a page, and the attributes that they have."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    frame = Moment(ref="k1", blob="sha", span=TimeSpan.of(5_000, 5_000))
    calls = [
        ShownCall(CALL, [("user", EVIL)], EVIL),
        ShownCall(CALL.model_copy(update={"error": EVIL})),
    ]
    monkeypatch.setattr(trajectory_tools, "videos_named", lambda *_: {VIDEO: FILM})
    monkeypatch.setattr(trajectory_tools, "frame_at", lambda *_: frame)
    monkeypatch.setattr(
        trajectory_tools, "calls_in_round", lambda _, __, number: calls if number == 1 else []
    )
    return monkeypatch


def page_of(*events: Event, row: StoredTrajectory = ASKED) -> str:

    return trajectory_tools.render_page(cast(Store, Shelf()), History(row, events))


def test_no_word_from_outside_is_markup(around: pytest.MonkeyPatch) -> None:
    page = page_of(*EVENTS)
    assert page.count("&lt;script&gt;") > 10
    tags = Tags(page)
    assert not {"script", "b"} & tags.names
    assert "onclick" not in tags.attributes


def test_bar_lies_where_it_is_in_its_own_video_and_nowhere_else(around: pytest.MonkeyPatch) -> None:
    page = page_of(*EVENTS)
    assert page.count('class="bar"') == 1
    assert 'style="left:25.000%;width:25.000%" title="0:25-0:50"' in page


def test_an_image_that_cannot_be_read_leaves_the_page_whole(around: pytest.MonkeyPatch) -> None:
    frame = Moment(ref="k1", blob="gone", span=TimeSpan.of(5_000, 5_000))
    around.setattr(trajectory_tools, "frame_at", lambda *_: frame)
    page = page_of(*EVENTS)
    assert "<img" not in page
    assert page.rstrip().endswith("</html>")


def test_one_still_searched_says_that_there_is_no_answer(around: pytest.MonkeyPatch) -> None:
    page = page_of(row=replace(ASKED, answer=None, state="running"))
    assert "<strong>No answer.</strong>" in page
    assert "searching · models" in page
    assert "Before the first round: the plan" in page


def test_a_terminal_is_shown_nothing_but_words_either() -> None:
    cited = Moment(ref="m1\x1b[2J", title="t\x07", span=TimeSpan.of(0, 1), text="a\x1b[31mb")
    assert citation_line(cited).isprintable()


@pytest.mark.parametrize("query", ["a gate", " a gate ", "", "  "])
def test_an_act_that_nobody_changed_is_left_alone(query: str) -> None:
    assert _edited_action(SEARCH_OF_FORK, query, UNCHANGED, MODES) is None


@pytest.mark.parametrize(
    ("was", "query", "mode", "search"),
    [
        (SEARCH_OF_FORK, "a door", UNCHANGED, (Mode.EVENT, "a door")),
        (SEARCH_OF_FORK, " a door ", UNCHANGED, (Mode.EVENT, "a door")),
        (SEARCH_OF_FORK, "a gate", "keyframe", (Mode.KEYFRAME, "a gate")),
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
