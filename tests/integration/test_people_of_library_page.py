"""The people page over all videos: who is in several, who may be the same, and putting it right."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from streamlit.testing.v1 import AppTest

from domain.errors import DatabaseError
from domain.people import Forgotten
from library.people import person_of_library
from people.across_videos import join, rename
from people.corrections import history
from people.forget import forget
from store.database import Store
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import WordToolbox
from tests.support.several_videos import INTERVIEW, LECTURE, TALK, labels, watch_people
from ui.corrections import FORGOTTEN_FILE


@pytest.fixture
def library(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    watch_people(store, TALK, {1: 0.9, 2: 0.9})
    watch_people(store, INTERVIEW, {1: 0.9, 3: 0.9})
    with app_over(store, monkeypatch, WordToolbox):
        yield store


def all_videos() -> AppTest:
    return open_page("people", of="All videos")


def press(page: AppTest, label: str, place: int = 0) -> AppTest:
    [one for one in page.button if one.label == label][place].click().run()
    assert not page.exception
    return page


def links(page: AppTest) -> list[str]:
    return [str(getattr(link, "label", "")).replace("\\", "") for link in page.get("page_link")]


def joined(store: Store) -> int:
    return len(person_of_library(store, TALK, "0").characters)


def test_a_suggestion_is_accepted_and_undone(library: Store) -> None:
    page = all_videos()
    assert "Nobody is known by name yet" in words(page)
    assert "They look alike: " in words(page)
    press(page, "Yes, the same")
    assert joined(library) == 2
    assert "are one person." in words(page)
    assert "Last seen 0:00-0:03 of interview" in links(page)
    press(page, "Undo")
    assert joined(library) == 1
    assert "Undone: Joined person 0 with person 0" in words(page)


def test_a_rejected_pair_is_suggested_no_more(library: Store) -> None:
    page = press(all_videos(), "No")
    assert "are two people." in words(page)
    assert "No likely pairs in different videos." in words(page)
    assert [one.kind for one in history(library, INTERVIEW)] == ["differ"]


def test_sure_pairs_are_joined_by_one_button_and_one_is_split_off(library: Store) -> None:
    watch_people(library, LECTURE, {1: 0.9})
    page = press(all_videos(), "Join 3 sure pairs")
    assert "Joined 2 pairs." in words(page)
    assert joined(library) == 3
    press(page, "Somebody else")
    assert {joined(library), len(person_of_library(library, LECTURE, "0").characters)} == {2, 1}


def test_a_name_is_given_in_all_videos(library: Store) -> None:
    join(library, TALK, "0", INTERVIEW, "0")
    page = all_videos()
    next(one for one in page.text_input if str(one.key).startswith("name_")).input("Ada").run()
    assert not page.exception
    assert labels(library, TALK)[0] == labels(library, INTERVIEW)[0] == "Ada"
    assert "is now called Ada." in words(page)
    press(page, "Undo")
    assert "Ada" not in labels(library, TALK) + labels(library, INTERVIEW)


def test_the_page_of_a_video_says_where_else_a_person_is(library: Store) -> None:
    join(library, TALK, "0", INTERVIEW, "0")
    rename(library, TALK, "0", "Ada")
    page = open_page("people", video=TALK, person=0)
    assert "Ada in interview" in links(page)
    page = open_page("people", video=TALK, person=1)
    assert "Ada in interview" not in links(page)


def test_a_person_is_forgotten_in_all_their_videos_and_can_be_restored(library: Store) -> None:
    join(library, "talk", "0", "interview", "0")
    rename(library, "talk", "0", "Ann")
    page = all_videos()
    assert next(b for b in page.button if b.label == "Forget").disabled
    next(c for c in page.checkbox if c.label == "Yes, forget Ann").check().run()
    press(page, "Forget")
    assert "Ann is forgotten in interview and talk." in words(page)
    for video in (TALK, INTERVIEW):
        assert "Ann" not in labels(library, video)
    name, kept = page.session_state[FORGOTTEN_FILE]
    assert page.get("download_button")
    with ZipFile(BytesIO(kept)) as archive:
        files = {file.split("-of-")[1]: archive.read(file) for file in archive.namelist()}
    assert files.keys() == {f"{INTERVIEW}.zip", f"{TALK}.zip"}
    page = open_page("people", video=TALK)
    page.file_uploader[0].upload(name, files[f"{TALK}.zip"], "application/zip").run()
    press(page, "Restore")
    assert "Ann" in labels(library, TALK)


def test_what_restores_a_person_is_kept_if_a_later_video_fails(
    library: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(library, "talk", "0", "interview", "0")

    def fail_in_interview(store: Store, video: str, *more: Any) -> Forgotten:
        if video == INTERVIEW:
            raise DatabaseError("the database is gone")
        return forget(store, video, *more)

    monkeypatch.setattr("library.people.forget", fail_in_interview)
    page = all_videos()
    next(c for c in page.checkbox if c.label.startswith("Yes, forget")).check().run()
    press(page, "Forget")
    assert "the database is gone" in words(page)
    with ZipFile(BytesIO(page.session_state[FORGOTTEN_FILE][1])) as archive:
        (file,) = archive.namelist()
    assert file.endswith(f"{TALK}.zip")
