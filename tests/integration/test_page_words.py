"""The library page over a small library without any model: lists, and words that are safe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from domain.media import ClipState, Video
from library.memory import events
from people.across_videos import rename
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.videos import FAILED, add_video, set_video_state
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import PARTY
from tests.support.event_graphs import update_event_graph
from tests.support.markup_video import BAIT, MARKS, markup_of, plant
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    clip,
    face,
    local_writers,
    percept,
    remember,
    said,
    text_at,
    voice,
)

TOOLS: Any = Tools()
TITLE = "**my** <b>talk</b> :red[1] $x$"


@pytest.fixture
def talk(app_library: Store) -> Store:
    """A talk of three clips, the last of which failed."""
    video = Video(id=VIDEO, title=TITLE, path=None, duration_ms=90_000)
    with app_library.begin() as session:
        add_video(session, video, [clip(n) for n in range(3)], {})
    for n in range(2):
        start = 30 * n
        plate = (text_at(start + 5, "Grace Hopper"), text_at(start + 5, "Professor", row=1))
        one = Perceived(
            percept(
                n,
                faces=(face(0, 1, (start, start + 25)),),
                voices=(voice(0, 1, (start, start + 6)),),
                utterances=(said(start, f"Look at <script>{n}</script> and **this**.", voice=0),),
                screen_texts=plate,
            )
        )
        assert remember(app_library, VIDEO, one, local_writers(), TOOLS, SETTINGS) == ClipState.DONE
    with app_library.begin() as session:
        mark_clip(session, VIDEO, 2, ClipState.FAILED, "the model said <nothing>")
        set_video_state(session, VIDEO, FAILED, "1 clips could not be watched")
    update_event_graph(app_library, VIDEO, local_writers(), TOOLS, SETTINGS, is_final=True)
    return app_library


def test_a_video_is_listed_with_how_far_it_is_and_what_to_do(talk: Store) -> None:
    output = words(open_page("library"))
    assert TITLE in output
    assert "1:30 · 2 of 3 clips, 1 failed" in output
    assert "1 clips could not be watched" in output


def test_words_from_outside_mean_nothing_to_markdown(talk: Store) -> None:
    page = open_page("video", video=VIDEO, show="Clips")
    output = words(page)
    assert "Look at <script>0</script> and **this**." in output
    assert "the model said <nothing>" in output
    raw = "\n".join(str(one.value) for one in page.markdown)
    assert "<script>" not in raw
    assert "**this**" not in raw
    for shown in (page, open_page("library"), open_page("people", video=VIDEO)):
        assert not any(one.allow_html for one in shown.markdown)


def test_many_videos_are_shown_a_page_at_a_time_and_searched(app_library: Store) -> None:
    with app_library.begin() as session:
        for n in range(60):
            video = Video(id=f"{n:016x}", title=f"talk {n:02d}", path=None, duration_ms=1)
            add_video(session, video, [], {})
    assert "26 to 50 of 60" in words(open_page("library", page=2))
    found = words(open_page("library", q="TALK 07"))
    assert "talk 07" in found
    assert "talk 08" not in found
    assert "No title matches" in words(open_page("library", q="zebra"))


# Words quoted from a video or a model are words on every page: no link, picture or sign.


@pytest.fixture
def planted(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, str]]:
    store.home.config.write_text('[profiles.scripted]\nbase = "local"\n')
    with app_over(store, monkeypatch):
        yield store, plant(store)


def pages_of(store: Store, asked: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every page, in each of its views."""
    event = events(store, PARTY).items[0].number
    yield "ask", {"trajectory": asked}
    yield "trajectory", {}
    for number in (0, 1, 2):
        yield "trajectory", {"trajectory": asked, "round": number, "with_": asked}
    yield "library", {"delete": PARTY}
    yield "video", {"video": PARTY, "segment": event}
    yield "video", {"video": PARTY, "show": "Clips"}
    yield "video", {"video": PARTY, "show": "Search", "q": "said"}
    yield "people", {"video": PARTY, "person": 1}
    yield "health", {}


def test_no_page_gives_a_word_from_outside_to_markdown(planted: tuple[Store, str]) -> None:
    store, asked = planted
    rename(store, PARTY, "2", f"Zoe {BAIT}"[:200])
    for name, query in pages_of(store, asked):
        page = open_page(name, **query)
        assert "evil" in words(page), (name, query)
        for text in markup_of(page):
            assert [mark for mark in MARKS if mark in text] == [], (name, query, text)


def test_what_is_shown_has_every_word(planted: tuple[Store, str]) -> None:
    _store, asked = planted
    assert BAIT in words(open_page("ask", trajectory=asked))
    assert BAIT in words(open_page("video", video=PARTY, show="Clips"))
