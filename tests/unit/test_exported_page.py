"""A trajectory as one page: every word from outside is only words there, and bars lie in time."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import cast

import pytest

from cli.answers import citation_line
from domain.asking import Action, Answer, Citation, Evidence, Mode, Question, Subtask
from domain.errors import BlobGone
from domain.media import Video
from domain.moments import Moment
from domain.time import TimeSpan
from domain.trajectory import (
    Acted,
    Event,
    EvidenceRetrieved,
    ModelCalled,
    Planned,
    RoundClosed,
    RoundOpened,
)
from library.rounds import History, ShownCall
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from tests.support.machine import VIDEO
from tests.support.stored_rounds import ROW
from ui import trajectory_export

EVIL = "<script>x()</script>\"'&<b onclick=y>"
FILM = Video(id=VIDEO, title=EVIL, path=None, duration_ms=100_000)
TASK = Subtask(id="t1", text=EVIL, answer=EVIL)


def piece(start: int, end: int, video: str = VIDEO) -> Evidence:
    return Evidence(
        ref="m7", video=video, span=TimeSpan.of(start, end), text=EVIL, score=0.5, clip=0
    )


CITED = Citation(ref=EVIL, video=VIDEO, span=TimeSpan.of(5_000, 9_000), text=EVIL)
CALL = ModelCalled(round=1, purpose=EVIL, model=EVIL, request="h", tokens_in=5, ms=1500)
EVENTS: tuple[Event, ...] = (
    Planned(subtasks=(TASK,)),
    RoundOpened(round=1, subtask=EVIL, text=EVIL, attempt=1),
    Acted(round=1, action=Action(kind="search", mode=Mode.VIDEO, query=EVIL)),
    EvidenceRetrieved(
        round=1,
        mode=Mode.VIDEO,
        query=EVIL,
        evidence=(piece(25_000, 50_000), piece(0, 10, "f" * 16)),
        refused=EVIL,
    ),
    RoundClosed(round=1, subtasks=(TASK,), tokens=5, warning=EVIL),
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
    monkeypatch.setattr(trajectory_export, "videos_named", lambda *_: {VIDEO: FILM})
    monkeypatch.setattr(trajectory_export, "frame_at", lambda *_: frame)
    monkeypatch.setattr(
        trajectory_export, "calls_in_round", lambda _, __, number: calls if number == 1 else []
    )
    return monkeypatch


def page_of(*events: Event, row: StoredTrajectory = ASKED) -> str:

    return trajectory_export.render_page(cast(Store, Shelf()), History(row, events))


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
    around.setattr(trajectory_export, "frame_at", lambda *_: frame)
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
