"""A second process takes the index that the first worked out, as long as it is still true."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import delete, select, text, update
from sqlalchemy.orm import Session

from domain.media import ClipState
from domain.memories import Scope
from retrieval import index_store
from retrieval.index_cache import IndexCache
from retrieval.index_format import as_bytes, key_of
from retrieval.video_index import VideoIndex
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.forget import mark_rewritten
from store.queries.kept_indexes import CachedIndex, cache_index
from store.queries.memories import supersede
from store.queries.search import Lines, lines_between
from store.queries.stamps import version_of
from store.queries.videos import set_progress
from store.tables.schema import MemoryRow, SearchIndexRow
from tests.support.remembered import CLIP_MS, Said, watch
from views.library import delete_video_rows as delete_video

VIDEO, OTHER = "a" * 16, "b" * 16
FIRST = [[Said("Ann bakes a cake"), Said("Bob sings", 5)], [], [Said("The cake burns")]]


@pytest.fixture(autouse=True)
def _any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_store, "LEAST", 1)


@pytest.fixture
def watched(store: Store) -> Store:
    watch(store, VIDEO, FIRST)
    return store


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After which clips lines were read to work an index out."""
    read: list[int] = []

    def told(session: Session, video: str, after: int, through: int) -> Lines:
        read.append(after)
        return lines_between(session, video, after, through)

    monkeypatch.setattr("retrieval.index_cache.lines_between", told)
    return read


def look(store: Store, video: str = VIDEO, last_clip: int = 2) -> VideoIndex:
    """By a process that has read nothing yet."""
    return IndexCache(store, CLIP_MS).lines(Scope(video=video, last_clip=last_clip))


def kept(store: Store) -> dict[str, int]:
    with store.begin() as session:
        rows = session.execute(select(SearchIndexRow.video_id, SearchIndexRow.through))
        return {row.video_id: row.through for row in rows}


def texts(index: VideoIndex) -> list[str]:
    return [line.text for line in index.lines]


def test_the_second_process_reads_no_lines(watched: Store, unread: list[int]) -> None:
    first = look(watched)
    assert (kept(watched), unread) == ({VIDEO: 2}, [-1])
    second = look(watched)
    assert unread == [-1]
    assert list(second.lines) == list(first.lines)
    assert np.array_equal(second.vectors, first.vectors)


def test_short_videos_are_not_kept(watched: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_store, "LEAST", 4)
    look(watched)
    assert kept(watched) == {}


def test_lines_without_vectors_are_not_kept(watched: Store) -> None:
    with watched.begin() as session:
        session.execute(update(MemoryRow).values(embedding=None))
    assert len(look(watched).lines) == 3
    assert kept(watched) == {}


def test_clips_that_came_since_are_read_and_added(watched: Store, unread: list[int]) -> None:
    look(watched)
    watch(watched, VIDEO, [[Said("They eat the cake")]], first=3)
    found = look(watched, last_clip=3)
    assert unread == [-1, 2]
    assert texts(found)[-1] == "They eat the cake"
    assert kept(watched) == {VIDEO: 3}


def test_it_is_kept_again_only_once_it_has_grown_by_a_quarter(watched: Store) -> None:
    watch(watched, VIDEO, [[Said(f"line {n}", n) for n in range(6)]], first=3)
    cache = IndexCache(watched, CLIP_MS)
    for clip in (3, 4, 5, 6):
        cache.lines(Scope(video=VIDEO, last_clip=clip))
        watch(watched, VIDEO, [[Said(f"at {clip + 1}")]], first=clip + 1)
    # Nine lines at first, twelve with the third of those that came.
    assert kept(watched) == {VIDEO: 6}


def test_what_is_superseded_later_is_known_of_a_kept_index(watched: Store) -> None:
    look(watched)
    watch(watched, VIDEO, [[Said("The cake is fine")]], first=3)
    with watched.begin() as session:
        burns = select(MemoryRow.id).where(MemoryRow.text == "The cake burns")
        supersede(session, VIDEO, list(session.scalars(burns)), 3)
    assert look(watched, last_clip=3).gone.tolist()[2] == 3


def test_a_clip_that_is_told_anew_makes_the_kept_index_untrue(
    watched: Store, unread: list[int]
) -> None:
    look(watched)
    with watched.begin() as session:
        told = update(MemoryRow).where(MemoryRow.text == "Bob sings").values(text="Bob shouts")
        session.execute(told)
        mark_clip(session, VIDEO, 0, ClipState.DONE, text="Bob shouts")
    assert "Bob shouts" in texts(look(watched))
    look(watched)
    assert unread == [-1, -1]


def test_what_is_forgotten_is_in_no_kept_index(watched: Store) -> None:
    look(watched)
    with watched.begin() as session:
        session.execute(delete(MemoryRow).where(MemoryRow.text == "Bob sings"))
        mark_rewritten(session, VIDEO)
    assert kept(watched) == {}
    assert texts(look(watched)) == ["Ann bakes a cake", "The cake burns"]
    assert kept(watched) == {VIDEO: 2}


def test_with_the_video_goes_its_index(watched: Store) -> None:
    look(watched)
    delete_video(watched, VIDEO)
    assert kept(watched) == {}


def test_an_open_process_lets_go_of_a_deleted_video(watched: Store) -> None:
    watch(watched, OTHER, [[Said("A dog runs")]])
    cache = IndexCache(watched, CLIP_MS)
    scopes = [Scope(video=VIDEO, last_clip=2), Scope(video=OTHER, last_clip=0)]
    cache.look(scopes)
    delete_video(watched, VIDEO)
    cache.look(scopes[1:])
    assert list(cache._videos) == [OTHER]


def test_what_was_read_before_something_was_forgotten_is_not_kept(watched: Store) -> None:
    index = look(watched)
    with watched.begin() as session:
        mark_rewritten(session, VIDEO)
    late = CachedIndex(key_of(index.since, CLIP_MS), index.through, as_bytes(index))
    with watched.begin() as session:
        assert not cache_index(session, VIDEO, version_of(index.since), late)
    assert kept(watched) == {}


def test_nothing_is_kept_of_what_somebody_is_forgetting_and_nobody_waits(watched: Store) -> None:
    with watched.begin() as session:
        mark_rewritten(session, VIDEO)
        assert texts(look(watched))[0] == "Ann bakes a cake"
        assert kept(watched) == {}
    look(watched)
    assert kept(watched) == {VIDEO: 2}


def test_a_touch_by_a_process_of_before_takes_the_index_away(watched: Store) -> None:
    """One that knows of no versions writes the video's row as it is."""
    cache = IndexCache(watched, CLIP_MS)
    before = cache.lines(Scope(video=VIDEO, last_clip=2))
    with watched.begin() as session:
        session.execute(text("UPDATE videos SET created_at = created_at"))
    assert kept(watched) == {}
    assert cache.lines(Scope(video=VIDEO, last_clip=2)) is not before


@pytest.mark.parametrize("anew", ["title = 'another'", "profile = 'other'", "subtitles = '[]'"])
def test_whatever_else_is_said_of_a_video_takes_the_index_away(watched: Store, anew: str) -> None:
    look(watched)
    with watched.begin() as session:
        session.execute(text(f"UPDATE videos SET {anew}"))  # noqa: S608
    assert kept(watched) == {}


def test_nobody_else_says_which_version_a_video_is(watched: Store) -> None:
    before = look(watched).since
    with watched.begin() as session:
        session.execute(text("UPDATE videos SET rewritten = 1"))
    assert kept(watched) == {}
    assert version_of(look(watched).since) > version_of(before)


@pytest.mark.parametrize(
    "progress",
    [
        {"state": "failed", "error": "a clip was odd"},
        {"state": "done", "error": None},
        {"duration_ms": 90_001},
        {"path": "/moved.mp4"},
        {"path": None},
    ],
)
def test_how_far_a_video_is_changes_nothing_that_was_learned(
    watched: Store, unread: list[int], progress: dict[str, object]
) -> None:
    cache = IndexCache(watched, CLIP_MS)
    held = cache.lines(Scope(video=VIDEO, last_clip=2))
    for _ in range(2):  # The second time there is nothing to change.
        with watched.begin() as session:
            set_progress(session, VIDEO, **progress)
    assert kept(watched) == {VIDEO: 2}
    assert cache.lines(Scope(video=VIDEO, last_clip=2)) is held
    assert unread == [-1]


def test_an_open_process_keeps_an_index_anew_after_lines_were_forgotten(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS)
    cache.lines(Scope(video=VIDEO, last_clip=2))
    with watched.begin() as session:
        session.execute(delete(MemoryRow).where(MemoryRow.text == "Bob sings"))
        mark_rewritten(session, VIDEO)
    cache.lines(Scope(video=VIDEO, last_clip=2))
    assert kept(watched) == {VIDEO: 2}


def test_where_each_clip_says_something_anew_not_each_writes_the_index(watched: Store) -> None:
    cache = IndexCache(watched, CLIP_MS)
    watch(watched, VIDEO, [[Said(f"line {n}", n) for n in range(20)]], first=3)
    written = []
    for clip in range(4, 8):
        cache.lines(Scope(video=VIDEO, last_clip=clip - 1))
        written.append(bool(kept(watched)))
        with watched.begin() as session:
            mark_rewritten(session, VIDEO)
        watch(watched, VIDEO, [[Said(f"at {clip}")]], first=clip)
    assert written == [True, False, False, False]


def test_of_a_live_stream_only_what_is_new_is_read(watched: Store, unread: list[int]) -> None:
    cache = IndexCache(watched, CLIP_MS)
    for clip in range(3, 6):
        cache.lines(Scope(video=VIDEO, last_clip=clip - 1))
        with watched.begin() as session:
            set_progress(session, VIDEO, duration_ms=CLIP_MS * (clip + 1))
        watch(watched, VIDEO, [[Said(f"at {clip}")]], first=clip)
    assert unread == [-1, 2, 3]
    assert texts(cache.lines(Scope(video=VIDEO, last_clip=5)))[-3:] == ["at 3", "at 4", "at 5"]
    unread.clear()
    assert texts(look(watched, last_clip=5))[-3:] == ["at 3", "at 4", "at 5"]
    assert -1 not in unread


def test_a_damaged_index_is_worked_out_anew(watched: Store, unread: list[int]) -> None:
    expected = texts(look(watched))
    with watched.begin() as session:
        session.execute(update(SearchIndexRow).values(body=b"no index"))
    assert texts(look(watched)) == expected
    assert texts(look(watched)) == expected
    assert unread == [-1, -1]


def test_an_index_of_another_length_of_clips_is_not_taken(
    watched: Store, unread: list[int]
) -> None:
    look(watched)
    IndexCache(watched, CLIP_MS // 2).lines(Scope(video=VIDEO, last_clip=2))
    assert unread == [-1, -1]


def test_where_nothing_can_be_written_searching_goes_on(watched: Store) -> None:
    with watched.begin() as session:
        session.execute(text("ALTER TABLE search_indexes ADD CHECK (through < 0)"))
    assert len(look(watched).lines) == 3
    assert kept(watched) == {}
