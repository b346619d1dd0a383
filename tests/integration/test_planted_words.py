"""Words quoted from a video or a model are words on every page: no link, picture or sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from library.memory import events
from people.across_videos import rename
from store.database import Store
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import PARTY
from tests.support.markup_video import BAIT, MARKS, markup_of, plant


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
