"""Two who write, or one who writes while others read: the memory is as if each had come alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, TypeVar

import pytest
from sqlalchemy import select

from domain.calls import CallRecord
from domain.errors import NotFound
from domain.media import ClipState, Percept
from flows.removal import delete_video_rows
from library.memory import dump_lines, show_video
from library.videos import all_videos, check_video
from memory.captions import CaptionTrack, read_captions
from memory.drafts import CallRecording
from store.database import Store, open_store
from store.home import Home
from store.queries.events import patches_of
from store.tables.schema import MessageRow, ModelCallRow
from tests.support.event_graphs import import_with_events, update_event_graph
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    voice,
)

T = TypeVar("T")
TOOLS: Any = Tools()
CLIPS = 11
HANDS = 4


def scene(n: int) -> Percept:
    start = 30 * n
    return percept(
        n,
        faces=(face(0, n % 2, (start, start + 20)), face(1, 5, (start, start + 20))),
        voices=(voice(0, n % 3, (start, start + 8)),),
        utterances=(said(start, f"My name is {('Ada', 'Omar', 'Zoe')[n % 3]}.", voice=0),),
    )


def watch(store: Store, n: int) -> ClipState:
    return remember(store, VIDEO, Perceived(scene(n)), local_writers(), TOOLS, SETTINGS)


def update_graph(store: Store) -> int:
    return update_event_graph(store, VIDEO, local_writers(), TOOLS, SETTINGS, is_final=True)


def at_once(*jobs: Callable[[], T]) -> list[T]:
    """What each job gave; all begin at one moment."""
    gate = Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        gate.wait(30)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(120) for future in [pool.submit(run, job) for job in jobs]]


@pytest.fixture
def alone(home: Home, make_database: Callable[[], str]) -> list[str]:
    with open_store(home, make_database()) as other:
        known_video(other, CLIPS)
        for n in range(CLIPS):
            watch(other, n)
        update_graph(other)
        return list(dump_lines(other, VIDEO))


@pytest.mark.full
def test_clip_watched_by_several_at_once_is_remembered_once(store: Store, alone: list[str]) -> None:
    known_video(store, CLIPS)
    for n in range(CLIPS):
        done = at_once(*[lambda n=n: watch(store, n) for _ in range(HANDS)])
        assert done == [ClipState.DONE] * HANDS
    assert sum(at_once(*[lambda: update_graph(store) for _ in range(HANDS)])) == 2
    with store.begin() as session:
        assert [one.at_clip for one in patches_of(session, VIDEO)] == [9, 10]
    assert list(dump_lines(store, VIDEO)) == alone


@pytest.mark.full
def test_whoever_reads_meanwhile_sees_whole_clips_only(store: Store, alone: list[str]) -> None:
    known_video(store, CLIPS)
    over: list[bool] = []

    def write() -> int:
        for n in range(CLIPS):
            watch(store, n)
        update_graph(store)
        over.append(True)
        return 0

    def read() -> int:
        looks = 0
        while not over or not looks:
            shown = show_video(store, VIDEO)
            assert not check_video(store, VIDEO).findings
            for one in shown.clips:
                assert (len(one.lines) > 0) == (one.state == ClipState.DONE)
            assert shown.last_clip + 1 == sum(one.state == "done" for one in shown.clips)
            looks += 1
        return looks

    assert min(at_once(write, read, read)[1:]) > 0
    assert list(dump_lines(store, VIDEO)) == alone


def call() -> CallRecord:
    message = {"role": "user", "content": "what is seen"}
    return CallRecord("r", "clip", "p", "m", (message,), {"text": "x"}, None, 10, 1, 0.0, 7)


def test_calls_for_a_video_that_was_deleted_meanwhile_are_not_kept(store: Store) -> None:
    known_video(store, 1)
    calls = CallRecording(store, VIDEO, 0)
    calls.record(call())
    delete_video_rows(store, VIDEO)
    calls.record(call())
    with store.begin() as session:
        assert session.scalars(select(ModelCallRow)).all() == []
        assert session.scalars(select(MessageRow)).all() == []


def test_calls_are_stored_or_go_with_their_video_in_whatever_order(store: Store) -> None:
    for _ in range(10):
        known_video(store, 1)

        def keep() -> int:
            CallRecording(store, VIDEO, 0).record(call())
            return 0

        at_once(keep, lambda: delete_video_rows(store, VIDEO))
        with store.begin() as session:
            assert session.scalars(select(ModelCallRow)).all() == []


def test_a_video_deleted_while_it_is_watched_leaves_nothing(store: Store) -> None:
    known_video(store, CLIPS)

    def write() -> int:
        done = 0
        for n in range(CLIPS):
            try:
                done += watch(store, n) == ClipState.DONE
            except NotFound:
                break
        return done

    def remove() -> int:
        return delete_video_rows(store, VIDEO)

    at_once(write, remove)
    assert (all_videos(store).items, list(store.blobs.walk())) == ((), [])
    with pytest.raises(NotFound, match="was it deleted"):
        watch(store, 0)


@pytest.fixture
def track(tmp_path: Path) -> CaptionTrack:
    rows = [
        {"start": 30 * n + k, "end": 30 * n + k + 2, "text": f"The soup {n} needs salt {k}."}
        | ({"speaker": "Jake"} if k % 2 else {})
        for n in range(24)
        for k in range(3)
    ]
    path = tmp_path / "week.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return read_captions(path)


def bring_in(store: Store, track: CaptionTrack) -> list[str]:
    video = import_with_events(store, track, local_writers(), TOOLS, SETTINGS)
    return list(dump_lines(store, video.id))


def test_an_import_begun_twice_at_once_is_one_import(
    store: Store, home: Home, make_database: Callable[[], str], track: CaptionTrack
) -> None:
    one, other = at_once(lambda: bring_in(store, track), lambda: bring_in(store, track))
    assert one == other
    with open_store(home, make_database()) as single:
        assert bring_in(single, track) == one


@pytest.mark.full
def test_two_videos_watched_at_once_do_not_wait_for_each_other_or_mix(
    store: Store, track: CaptionTrack, alone: list[str]
) -> None:
    known_video(store, CLIPS)

    def write() -> list[str]:
        for n in range(CLIPS):
            watch(store, n)
        update_graph(store)
        return list(dump_lines(store, VIDEO))

    watched, imported = at_once(write, lambda: bring_in(store, track))
    assert (watched, list(dump_lines(store, track.id))) == (alone, imported)
    delete_video_rows(store, track.id)
    assert list(dump_lines(store, VIDEO)) == alone
