"""The outline of a video, in all its formats and over HTTP, with names instead of tags."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sqlalchemy import update

from cli.portrait import as_markdown, as_text, as_vtt, as_youtube
from domain.time import TimeSpan
from flows.build import build
from library.outlines import Chapter, Outline, borders, load_outline
from store.database import Store
from store.tables.schema import VideoRow
from strategies.registry import find_strategy
from tests.support.asking import PARTY
from tests.support.caption_evaluations import workspace_of
from tests.support.markup_video import BAIT
from tests.support.remembered import Said, name, see, watch

CLIPS = 50
TOPICS = (
    ("<face_1> washes the red car", "The car stands in the garage", "The hose leaks"),
    ("<face_2> cooks noodles in the kitchen", "The soup boils in the pot", "The lid falls"),
)


def watch_party(store: Store) -> None:
    """Twenty-five minutes, first of a car and then of soup, in which one of two has a name."""
    clips = [
        [Said(text, 8 * at, source="caption") for at, text in enumerate(TOPICS[number >= 12])]
        for number in range(CLIPS)
    ]
    watch(store, PARTY, clips)
    see(store, PARTY, "<face_1>", 0, 10)
    name(store, PARTY, 1, "Ann", "<face_1>")


@pytest.fixture
def built(store: Store) -> Store:
    watch_party(store)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
    build(workspace_of(store), PARTY, find_strategy("memdreamer"), lambda *_: None)
    return store


def test_chapters_are_a_partition_with_a_border_where_the_topic_changes(built: Store) -> None:
    found = load_outline(built, PARTY, 2).finest()
    assert (found[0].span.start_ms, found[-1].span.end_ms) == (0, CLIPS * 30_000)
    assert all(a.span.end_ms == b.span.start_ms for a, b in pairwise(found))
    assert 12 * 30_000 in borders(load_outline(built, PARTY, 2))


@pytest.mark.full
def test_people_have_their_names_and_no_tag_is_shown(built: Store) -> None:
    whole = as_text(load_outline(built, PARTY, 3))
    assert "Ann washes the red car" in whole
    assert "<face" not in whole
    assert "An unnamed person cooks noodles" in whole


def chapter(start: int, end: int, title: str, *parts: Chapter) -> Chapter:
    return Chapter(span=TimeSpan.of(start, end), title=title, text="", parts=parts)


MADE = Outline(
    video="ab" * 8,
    title="A *day*",
    text="About <work>.",
    depth=2,
    chapters=(
        chapter(
            500,
            3_700_250,
            "All",
            chapter(500, 5_000, "Short"),
            chapter(5_000, 60_000, "Tea & <b>cake</b>"),
            chapter(60_000, 3_700_250, "Song"),
        ),
    ),
)


def test_youtube_begins_at_zero_and_has_no_chapter_under_ten_seconds() -> None:
    assert as_youtube(MADE) == "0:00 Short\n1:00 Song"


def test_a_track_of_chapters_has_no_markup_of_its_own() -> None:
    assert as_vtt(MADE).split("\n\n")[2] == (
        "00:00:05.000 --> 00:01:00.000\nTea &amp; &lt;b&gt;cake&lt;/b&gt;"
    )
    assert as_vtt(MADE).startswith("WEBVTT\n\n00:00:00.500 --> ")
    assert "01:01:40.250" in as_vtt(MADE)


def test_markdown_shows_words_as_words() -> None:
    lines = as_markdown(MADE).splitlines()
    assert lines[0] == "# A \\*day\\*"
    assert lines[2] == "About &lt;work&gt;."
    bait = as_markdown(MADE.model_copy(update={"text": BAIT}))
    assert [mark for mark in ("https://evil", "www.evil", "<img", "![", "](") if mark in bait] == []
    assert lines[6].startswith("  - **0:05-1:00** Tea &amp; &lt;b&gt;")
