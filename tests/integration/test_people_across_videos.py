"""Who is who in different videos: joined, split off, kept apart, named and forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from domain.errors import DatabaseError, InputError
from domain.memories import Scope
from domain.people import Forgotten
from flows.removal import delete_video_rows
from library.memory import dump_lines
from library.people import likely_same_people, people_of_library, person_of_library
from library.removal import export_video
from people.across_videos import join, keep_apart, rename, split_off
from people.corrections import history, merge, split, undo
from people.forget import forget, restore_forgotten
from people.likely_same import join_sure, likely_in_other_videos
from store import vector_index
from store.database import Store, open_store
from store.export import import_exported_video
from store.home import Home
from store.queries.characters import people_in_view
from store.vector_index import EXEMPLARS, build_index, has_index, index_name
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import WordToolbox
from tests.support.library import Quiet
from tests.support.library_templates import FilledLibraries
from tests.support.memory import WordVectors
from tests.support.several_videos import (
    INTERVIEW,
    LECTURE,
    MODELS,
    SIZE,
    TALK,
    labels,
    watch_people,
)
from ui.corrections import FORGOTTEN_FILE

Place = tuple[str, int]


@pytest.fixture
def three(store: Store, libraries: FilledLibraries) -> Store:
    """Three videos with two faces each: person 0 is the same in all, person 1 another in each."""
    libraries.fill(store, fill_three)
    return store


def fill_three(store: Store) -> None:
    for n, video in enumerate((TALK, INTERVIEW, LECTURE)):
        watch_people(store, video, {1: 0.9, 10 + n: 0.9})


def persons(store: Store) -> list[set[Place]]:
    """The persons of several characters."""
    found = people_of_library(store).items
    return [set(places(one.characters)) for one in found if len(one.characters) > 1]


def places(cards: object) -> list[Place]:
    return [(one.video, one.number) for one in cards]  # type: ignore[attr-defined]


def likely(store: Store, video: str | None = None) -> list[tuple[Place, Place, bool]]:
    return [
        ((pair.one.video, pair.one.number), (pair.other.video, pair.other.number), pair.sure)
        for pair in likely_same_people(store, video, across=True)
    ]


def seen_within(store: Store, video: str) -> list[str]:
    """All that a video holds but its corrections, and its people as of its first clip."""
    rows = [line for line in dump_lines(store, video) if '"row":"correction"' not in line]
    with store.begin() as session:
        people = people_in_view(session, [Scope(video=video, last_clip=0)])[video]
    return [*rows, *(person.model_dump_json() for person in people)]


def test_a_join_makes_one_person_and_changes_nothing_within_a_video(three: Store) -> None:
    before = [seen_within(three, video) for video in (TALK, INTERVIEW)]
    done = join(three, "talk", "0", "interview", "face_0")
    assert done.told == f"Joined person 0 with person 0 of video {INTERVIEW}"
    assert persons(three) == [{(TALK, 0), (INTERVIEW, 0)}]
    assert [seen_within(three, video) for video in (TALK, INTERVIEW)] == before
    with pytest.raises(InputError, match="are one already"):
        join(three, "interview", "0", "talk", "0")
    with pytest.raises(InputError, match="both of talk"):
        join(three, "talk", "0", "talk", "1")


def test_who_is_joined_with_one_is_joined_with_all_even_if_the_one_is_deleted(three: Store) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    join(three, LECTURE, "0", INTERVIEW, "0")
    assert persons(three) == [{(TALK, 0), (INTERVIEW, 0), (LECTURE, 0)}]
    delete_video_rows(three, INTERVIEW)
    assert persons(three) == [{(TALK, 0), (LECTURE, 0)}]
    delete_video_rows(three, LECTURE)
    assert (persons(three), len([one.told for one in history(three, TALK)])) == ([], 1)


def test_two_persons_of_two_videos_each_become_one(three: Store) -> None:
    watch_people(three, "d" * 16, {1: 0.9})
    join(three, TALK, "0", INTERVIEW, "0")
    join(three, LECTURE, "0", "dddd", "0")
    assert len(persons(three)) == 2
    join(three, "dddd", "0", TALK, "0")
    assert [len(person) for person in persons(three)] == [4]
    given = [video for video in (TALK, LECTURE) if len(history(three, video)) > 1]
    with pytest.raises(InputError, match=f"undo that first: homer people undo {given[0]} 2"):
        undo(three, given[0], 1)
    undo(three, given[0])
    assert sorted(len(person) for person in persons(three)) == [2, 2]


@pytest.mark.parametrize("undone_in", [TALK, INTERVIEW])
def test_a_join_is_undone_in_both_videos_from_either(three: Store, undone_in: str) -> None:
    rename(three, TALK, "1", "Ada")
    join(three, TALK, "0", INTERVIEW, "0")
    rename(three, TALK, "1", "Grace")
    number = next(one.number for one in history(three, undone_in) if one.kind == "join")
    assert undo(three, undone_in, number).undone
    assert persons(three) == []
    assert [one.undone for one in history(three, TALK)] == [False, True, False]
    assert [one.undone for one in history(three, INTERVIEW)] == [True]
    assert labels(three, TALK)[1] == "Grace"


def test_two_people_are_not_joined_through_others_but_a_later_word_counts(three: Store) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    keep_apart(three, TALK, "0", LECTURE, "0")
    with pytest.raises(InputError, match="are two people already"):
        keep_apart(three, LECTURE, "0", TALK, "0")
    with pytest.raises(InputError, match="were said to be two people: undo that first"):
        join(three, INTERVIEW, "0", LECTURE, "0")
    with pytest.raises(InputError, match="are one: split one of them off first"):
        keep_apart(three, TALK, "0", INTERVIEW, "0")
    join(three, TALK, "0", LECTURE, "0")
    assert len(persons(three)[0]) == 3


def test_who_is_split_off_leaves_the_others_joined_and_is_not_suggested_again(three: Store) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    join(three, TALK, "0", LECTURE, "0")
    split_off(three, INTERVIEW, "0")
    assert (persons(three), likely(three)) == ([{(TALK, 0), (LECTURE, 0)}], [])
    with pytest.raises(InputError, match="is joined with nobody in another video"):
        split_off(three, INTERVIEW, "0")
    undo(three, INTERVIEW)
    assert len(persons(three)[0]) == 3


def test_a_join_follows_the_number_through_corrections_of_the_video(three: Store) -> None:
    join(three, TALK, "1", INTERVIEW, "1")
    merge(three, TALK, "1", "0")
    assert persons(three) == [{(TALK, 0), (INTERVIEW, 1)}]
    split_off(three, TALK, "0")
    assert persons(three) == []
    undo(three, TALK)
    split(three, TALK, "0", ["face_1"])
    assert persons(three) == [{(TALK, 1), (INTERVIEW, 1)}]


def test_a_name_holds_in_all_videos_of_a_person_until_undone(three: Store) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    rename(three, INTERVIEW, "0", "Ada")
    assert [labels(three, video)[0] for video in (TALK, INTERVIEW)] == ["Ada", "Ada"]
    assert labels(three, LECTURE)[0] != "Ada"
    assert person_of_library(three, TALK, "Ada").label == "Ada"
    with pytest.raises(InputError, match=r"Ada \(person 0\) is already called Ada"):
        rename(three, TALK, "0", "Ada")
    rename(three, TALK, "0", "Grace")
    undo(three, INTERVIEW)
    assert labels(three, TALK)[0] == "Ada"
    undo(three, TALK)
    assert "Ada" not in labels(three, TALK) + labels(three, INTERVIEW)


def test_a_name_given_before_a_join_holds_after_it_and_goes_with_it(three: Store) -> None:
    rename(three, LECTURE, "0", "Ada")
    join(three, TALK, "0", LECTURE, "0")
    assert [labels(three, video)[0] for video in (TALK, LECTURE)] == ["Ada", "Ada"]
    rename(three, INTERVIEW, "0", "Ada B.")
    join(three, INTERVIEW, "0", TALK, "0")
    assert labels(three, INTERVIEW)[0] == "Ada B."
    undo(three, INTERVIEW)
    undo(three, TALK)
    assert "Ada" not in labels(three, TALK)
    assert labels(three, LECTURE)[0] == "Ada"
    join(three, TALK, "0", LECTURE, "0")
    split_off(three, TALK, "0")
    assert "Ada" not in labels(three, TALK)


def test_who_was_last_seen_where(three: Store) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    last = person_of_library(three, TALK, "0").last_seen
    assert last is not None
    assert (last.title, str(last.span), last.seen) == ("interview", "00:00-00:03", True)


def test_a_forgotten_person_is_in_no_join_until_restored(three: Store, tmp_path: Path) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    join(three, TALK, "0", LECTURE, "0")
    file = tmp_path / "ada.zip"
    forget(three, TALK, "0", WordVectors(), file)
    assert persons(three) == [{(INTERVIEW, 0), (LECTURE, 0)}]
    restore_forgotten(three, TALK, file)
    assert len(persons(three)[0]) == 3


def test_suggestions_are_mutual_and_by_one_model_and_go_with_a_word(three: Store) -> None:
    watch_people(three, "d" * 16, {1: 0.9}, models=MODELS | {"faces": "yunet_sface"})
    found = likely(three, TALK)
    assert found == [
        ((TALK, 0), (INTERVIEW, 0), True),
        ((TALK, 0), (LECTURE, 0), True),
    ] or found == [((TALK, 0), (LECTURE, 0), True), ((TALK, 0), (INTERVIEW, 0), True)]
    keep_apart(three, TALK, "0", LECTURE, "0")
    join(three, TALK, "0", INTERVIEW, "0")
    assert likely(three) == []


def test_only_sure_pairs_are_joined_without_a_question(store: Store) -> None:
    watch_people(store, TALK, {1: 0.9, 2: 0.5, 3: 0.1})
    watch_people(store, INTERVIEW, {1: 0.9, 2: 0.5, 3: 0.1})
    assert likely(store, TALK) == [
        ((TALK, 0), (INTERVIEW, 0), True),
        ((TALK, 1), (INTERVIEW, 1), False),
    ]
    (done,) = join_sure(store, TALK)
    assert done.told.startswith("Joined person 0 with person 0 of video")
    assert ", as they look alike (0." in done.told
    assert (persons(store), join_sure(store, TALK)) == ([{(TALK, 0), (INTERVIEW, 0)}], [])


def test_the_index_finds_the_same_pairs(three: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    found = likely(three)
    with three.begin() as session:
        session.execute(text("ANALYZE exemplars"))
    monkeypatch.setitem(vector_index.LARGE, EXEMPLARS, 1)
    assert build_index(three, Quiet()) == 1
    with three.begin() as session:
        assert has_index(session, SIZE, EXEMPLARS)
        # So few rows are otherwise read one by one.
        session.execute(text("SET LOCAL enable_seqscan = off"))
        likely_in_other_videos(session, TALK)
        session.execute(text("SELECT pg_stat_force_next_flush()"))
    with three.begin() as session:
        used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = :name"
        assert session.scalar(text(used), {"name": index_name(SIZE, EXEMPLARS)}) > 0
    assert likely(three) == found != []


@pytest.fixture
def other(tmp_path: Path, make_database: Callable[[], str]) -> Iterator[Store]:
    with open_store(Home(tmp_path / "other"), make_database()) as opened:
        yield opened


def test_merged_libraries_keep_both_histories(three: Store, other: Store, tmp_path: Path) -> None:
    join(three, TALK, "0", INTERVIEW, "0")
    keep_apart(three, TALK, "1", INTERVIEW, "1")
    undo(three, TALK)
    for video in (TALK, INTERVIEW):
        export_video(three, video, tmp_path / f"{video}.zip")
    with ZipFile(tmp_path / f"{TALK}.zip") as archive:
        assert INTERVIEW.encode() not in archive.read("rows.jsonl")
    watch_people(other, LECTURE, {1: 0.9})
    watch_people(other, "d" * 16, {1: 0.9})
    join(other, LECTURE, "0", "dddd", "0")
    import_exported_video(other, tmp_path / f"{TALK}.zip", Quiet())
    assert persons(other) == [{(LECTURE, 0), ("d" * 16, 0)}]
    import_exported_video(other, tmp_path / f"{INTERVIEW}.zip", Quiet())
    assert sorted(map(sorted, persons(other))) == [
        [(TALK, 0), (INTERVIEW, 0)],
        [(LECTURE, 0), ("d" * 16, 0)],
    ]
    moved, kept = history(other, TALK), history(three, TALK)
    assert [one.outcomes for one in moved] == [one.outcomes for one in kept]
    assert [one.told for one in moved] == [
        one.told.replace(f"video {INTERVIEW}", "another video") for one in kept
    ]
    join(other, "dddd", "0", INTERVIEW, "0")
    assert len(persons(other)[0]) == 4


# The people page over all videos: who is in several, who may be the same, and putting it right.


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
