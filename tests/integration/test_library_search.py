"""The search of a whole library: words, meaning, people and filters; and saved searches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from streamlit.testing.v1 import AppTest

from domain.errors import InputError
from library.library_search import (
    MAX_SAVED,
    Added,
    LibraryQuery,
    LibraryResults,
    delete_search,
    list_searches,
    save_search,
    search_library,
)
from library.transcript import ON_SCREEN, SAID, SEEN
from people.across_videos import rename
from people.forget import forget
from store.database import Store
from store.queries import library as stored_search
from tests.support.app_pages import EVIL, app_over, open_page
from tests.support.asking import PARTY
from tests.support.library import FULL
from tests.support.remembered import Said, WordEmbedder, name, see, watch

TALK = FULL


@pytest.fixture
def library(store: Store) -> Store:
    """A party with Ann, and a talk with another Ann."""
    party = [
        Said("I painted the lighthouse green.", 2, "<voice_1>", who=("<voice_1>",)),
        Said("<face_1> is on screen.", 4, source="seen", who=("<face_1>",)),
        Said("EXIT through the lighthouse", 5, source="read"),
    ]
    watch(store, PARTY, [party])
    see(store, PARTY, "<face_1>", 0, 0)
    name(store, PARTY, 1, "Ann", "<face_1>", "<voice_1>")
    talk = [
        Said("The lighthouse is far away.", 1, "<voice_1>", who=("<voice_1>",)),
        Said("Paint dries slowly", 6, "<voice_2>", who=("<voice_2>",)),
        Said(f"A page says {EVIL}", 9, source="read"),
    ]
    watch(store, TALK, [talk])
    name(store, TALK, 1, "Ann", "<voice_1>")
    return store


@pytest.fixture
def app(library: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with app_over(library, monkeypatch):
        yield library


def found(store: Store, words: str = "", **query: object) -> LibraryResults:
    return search_library(store, WordEmbedder(), LibraryQuery(words=words, **query))


def texts(results: LibraryResults) -> list[str]:
    return sorted(one.text for one in results.with_words)


GREEN, FAR = "I painted the lighthouse green.", "The lighthouse is far away."


def test_words_are_found_in_all_videos_and_marked(library: Store) -> None:
    results = found(library, "lighthouses")
    assert texts(results) == ["EXIT through the lighthouse", GREEN, FAR]
    assert (results.total, results.more) == (3, False)
    assert {one.video for one in results.with_words} == {PARTY, TALK}
    line = results.with_words[0]
    assert [line.text[start:end] for start, end in line.marks] == ["lighthouse"]
    assert (results.groups, results.people) == ((SAID, ON_SCREEN), ("Ann",))


def test_filters_narrow_a_search_to_videos_kinds_people_and_dates(library: Store) -> None:
    assert texts(found(library, "lighthouse", videos=(TALK,))) == [FAR]
    assert texts(found(library, "lighthouse", groups=(ON_SCREEN,))) == [
        "EXIT through the lighthouse"
    ]
    assert texts(found(library, "lighthouse", person="Ann")) == [GREEN, FAR]
    assert texts(found(library, person="Ann", groups=(SEEN,))) == ["Ann is on screen."]
    assert texts(found(library, "lighthouse", person="Eve")) == []
    assert found(library, "lighthouse", added=Added.DAY).total == 3
    later = datetime.now(UTC) + timedelta(days=2)
    query = LibraryQuery(words="lighthouse", added=Added.DAY)
    assert search_library(library, WordEmbedder(), query, later) == LibraryResults()


def test_a_name_among_the_words_stands_for_that_person_in_every_video(library: Store) -> None:
    assert texts(found(library, "ann lighthouse")) == [GREEN, FAR]
    assert texts(found(library, "Ann", groups=(SEEN,))) == ["Ann is on screen."]
    rename(library, PARTY, "1", "Ada")
    assert texts(found(library, "ann lighthouse")) == [FAR]
    assert texts(found(library, "ada lighthouse")) == [GREEN]


def test_what_is_close_in_meaning_follows_and_is_not_repeated(library: Store) -> None:
    results = found(library, "it dries slowly anyhow")
    assert [one.text for one in results.close] == ["Paint dries slowly"]
    assert found(library, "quantum chromodynamics") == LibraryResults()


@pytest.mark.parametrize("words", ["%", "\\", "'", "& | !", "\x00", ".*", "<face_1>", "(" * 400])
def test_no_words_are_an_expression_or_a_tag(library: Store, words: str) -> None:
    assert found(library, words).total == 0


def test_a_search_is_saved_replaced_and_deleted(library: Store) -> None:
    query = LibraryQuery(words="lighthouse", videos=(TALK,), groups=(SAID,), added=Added.WEEK)
    save_search(library, " lights\n", query)
    assert list_searches(library) == {"lights": query}
    save_search(library, "lights", LibraryQuery(words="paint"))
    assert [one.words for one in list_searches(library).values()] == ["paint"]
    delete_search(library, "lights")
    assert list_searches(library) == {}
    with pytest.raises(InputError, match="write a name"):
        save_search(library, " ", query)
    for number in range(MAX_SAVED):
        save_search(library, str(number), query)
    with pytest.raises(InputError, match="delete one first"):
        save_search(library, "another", query)


def test_searches_for_somebody_who_is_forgotten_are_deleted(library: Store) -> None:
    for words, person in (("", "Ann"), ("what ann said", ""), ("paint", "")):
        save_search(library, words or person, LibraryQuery(words=words, person=person))
    forget(library, PARTY, "Ann", WordEmbedder())
    assert [*list_searches(library)] == ["paint"]


def links(page: AppTest) -> list[str]:
    found = [unquote(one.proto.query_string) for one in page.main.get("page_link")]
    return sorted(found, key=lambda link: (PARTY not in link, link))


def test_the_page_shows_moments_that_open_their_video(app: Store) -> None:
    page = open_page("search", q="lighthouse")
    assert {"t=0:02", f"video={PARTY}", "find=lighthouse"} <= set(links(page)[0].split("&"))
    assert "3 moments with these words" in [one.value for one in page.header]
    assert "**Ann:** I painted the **lighthouse** green\\." in [one.value for one in page.markdown]
    page.pills[0].set_value([ON_SCREEN]).run()
    assert "1 moment with these words" in [one.value for one in page.header]


def test_the_page_says_that_nothing_is_found_and_shows_words_as_words(app: Store) -> None:
    nothing = open_page("search", q="quantum chromodynamics")
    assert any("Nothing like this" in one.value for one in nothing.markdown)
    (limit,) = [one for one in nothing.caption if "Pictures were not searched" in one.value]
    assert "homer models pull" in limit.value
    assert "surfboard" in limit.proto.help
    some = open_page("search", q="lighthouse")
    assert not any("Pictures were not" in one.value for one in some.caption)
    page = open_page("search", q="dries", video="gone", kind="no such kind", added="never")
    assert not page.exception
    shown = open_page("search", q="page says")
    assert not any("<img" in one.value and "\\<" not in one.value for one in shown.markdown)


def test_a_search_is_saved_on_the_page_and_opened_again(app: Store) -> None:
    page = open_page("search", q="lighthouse")
    page.text_input[1].set_value("lights")
    next(one for one in page.button if one.label == "Save").click().run()
    assert [one.words for one in list_searches(app).values()] == ["lighthouse"]
    again = open_page("search")
    next(one for one in again.button if one.label == "lights").click().run()
    assert "3 moments with these words" in [one.value for one in again.header]


def test_superseded_lines_do_not_hide_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slide that stays is one line, written anew in each clip: the earlier ones do not count."""
    monkeypatch.setattr(stored_search, "MOST_MATCHES", 2)
    slide = [[Said("The lighthouse", 1, source="read", until=clip + 1)] for clip in range(4)]
    watch(store, PARTY, [*slide, [Said("The lighthouse stays", 1, source="read")]])
    results = found(store, "lighthouse")
    assert texts(results) == ["The lighthouse stays"]
    assert not results.more
