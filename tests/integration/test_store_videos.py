"""What a user notices of videos: found by name, watched once, gone when deleted."""

from __future__ import annotations

import pytest

from domain.errors import Ambiguous, NotFound
from domain.media import Clip, ClipState, Video
from domain.time import TimeSpan
from store.database import Store
from store.queries.clips import mark_clip, memory_view, next_clips
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.videos import add_video, find_video, set_video_state, video_state

A, B, C = "aaaa000000000001", "aaaa000000000002", "bbbb000000000003"


def video(video_id: str = A, title: str = "holiday", path: str | None = "/v.mp4") -> Video:
    return Video(id=video_id, title=title, path=path, duration_ms=95_000, width=640, height=360)


def clips(count: int = 4, first: int = 0) -> list[Clip]:
    spans = [(30_000 * i, min(30_000 * (i + 1), 95_000 + 30_000 * first)) for i in range(count)]
    return [Clip(index=first + i, span=TimeSpan.of(*span)) for i, span in enumerate(spans)]


def add(store: Store, *videos: Video) -> None:
    with store.begin() as session:
        for one in videos:
            assert add_video(session, one, clips(), {"speech": "whisper"})


def mark(store: Store, states: str, video_id: str = A) -> None:
    """``d`` done, ``f`` failed once, ``F`` failed for good, ``p`` pending."""
    with store.begin() as session:
        for index, letter in enumerate(states):
            for _ in range({"p": 0, "d": 1, "f": 1, "F": MAX_ATTEMPTS}[letter]):
                done = letter == "d"
                state = ClipState.DONE if done else ClipState.FAILED
                mark_clip(session, video_id, index, state, None if done else "it broke")


def last_clip(store: Store, as_of_ms: int | None = None) -> int:
    with store.begin() as session:
        return memory_view(session, [A], as_of_ms).scopes[0].last_clip


def test_adding_a_known_video_keeps_its_progress_and_learns_where_it_moved(store: Store) -> None:
    add(store, video())
    mark(store, "dd")
    with store.begin() as session:
        assert not add_video(session, video(path="/moved.mp4"), clips(), {"speech": "other"})
        assert not add_video(session, video(path=None), [], {})
        state = video_state(session, A)
        assert find_video(session, A).path == "/moved.mp4"
    assert state is not None
    assert (state.clips, state.done, state.models) == (4, 2, {"speech": "whisper"})


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (A, A),
        ("holiday", A),
        ("HOLIDAY", A),
        ("holi", A),
        ("bbbb", C),
        ("bbbb0000", C),
        ("100%", C),
        (B, B),
        ("aaaa000000000002", B),
        ("Work", B),
        ("w\u00f6rk.mp4", B),
        ("elsewhere/wo\u0308rk.mp4", B),
    ],
)
def test_a_video_is_found_by_id_title_or_beginning(store: Store, name: str, found: str) -> None:
    at_work = video(B, "work", "/clips/w\u00f6rk.mp4")
    add(store, video(A), at_work, video(C, "100% fun"))
    with store.begin() as session:
        assert find_video(session, name).id == found


@pytest.mark.parametrize(
    ("name", "output"),
    [
        *((name, "homer videos") for name in ("", "nothing", "%", "aaab", "0" * 16, "\\")),
        *((name, "did you mean 'holiday'") for name in ("_oliday", "oli", "HOLIDAI")),
    ],
)
def test_no_video_goes_by_that_name(store: Store, name: str, output: str) -> None:
    add(store, video())
    with store.begin() as session, pytest.raises(NotFound, match=output):
        find_video(session, name)


def test_an_ambiguous_name_is_refused_with_the_candidates(store: Store) -> None:
    add(store, video(A, "same"), video(B, "same"), video(C, "samurai"))
    with store.begin() as session:
        for name in ("aaaa", "same", "sam"):
            with pytest.raises(Ambiguous, match=f"{A} .same.*{B}"):
                find_video(session, name)


def test_a_videos_state_tells_what_failed(store: Store) -> None:
    add(store, video())
    mark(store, "dFf")
    with store.begin() as session:
        set_video_state(session, A, "failed", "the disk went away")
        state = video_state(session, A)
        assert video_state(session, B) is None
        with pytest.raises(ValueError, match="paused"):
            set_video_state(session, A, "paused")
    assert state is not None
    assert (state.state, state.error) == ("failed", "the disk went away")
    assert (state.done, state.failed) == (1, 2)


@pytest.mark.parametrize(
    ("states", "left", "again"),
    [
        ("pppp", [0, 1, 2, 3], [0, 1, 2, 3]),
        ("ddpp", [2, 3], [2, 3]),
        ("dfpp", [1, 2, 3], [1, 2, 3]),
        ("dFpp", [2, 3], [1, 2, 3]),
        ("dddd", [], []),
    ],
)
def test_left_to_watch(store: Store, states: str, left: list[int], again: list[int]) -> None:
    add(store, video())
    mark(store, states)
    with store.begin() as session:
        assert [clip.index for clip in next_clips(session, A)] == left
        assert [clip.index for clip in next_clips(session, A, again=True)] == again


def test_marking_a_clip_of_a_deleted_video_says_so(store: Store) -> None:
    with store.begin() as session, pytest.raises(NotFound, match="deleted"):
        mark_clip(session, A, 0, ClipState.DONE)


@pytest.mark.parametrize(
    ("states", "as_of_ms", "seen"),
    [
        ("pppp", None, -1),
        ("dpdd", None, 0),
        ("dddd", None, 3),
        ("dddd", 0, -1),
        ("dddd", 29_999, -1),
        ("dddd", 30_000, 0),
        ("dddd", 94_999, 2),
        ("dddd", 95_000, 3),
        ("dddd", 9_999_999, 3),
        ("ddpp", 30_000, 0),
        ("dfdd", None, 0),
        ("dFdd", None, 3),
        ("dFpp", None, 1),
    ],
)
def test_a_view_ends_at_the_last_settled_clip_in_time(
    store: Store, states: str, as_of_ms: int | None, seen: int
) -> None:
    add(store, video())
    mark(store, states)
    assert last_clip(store, as_of_ms) == seen


@pytest.mark.parametrize(("state", "seen"), [("watching", 0), ("done", 3), ("failed", 3)])
def test_failed_clip_hides_no_rest_once_watching_ended(store: Store, state: str, seen: int) -> None:
    add(store, video())
    mark(store, "dfdd")
    with store.begin() as session:
        set_video_state(session, A, state)
    assert last_clip(store) == seen


def test_a_view_keeps_the_order_of_its_videos_and_names_the_unknown(store: Store) -> None:
    add(store, video(A), video(C, "other"))
    mark(store, "dd", C)
    with store.begin() as session:
        view = memory_view(session, [C, A, C])
        assert [(s.video, s.last_clip) for s in view.scopes] == [(C, 1), (A, -1)]
        with pytest.raises(NotFound, match=B):
            memory_view(session, [A, B])
