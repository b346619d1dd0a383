"""Frames that outlive their clip: kept while watching or from the file, and gone when they must."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select

from domain.faults import FaultPoint
from domain.media import Video
from domain.time import TimeSpan
from flows import clip_memory
from flows.build import build
from flows.live_stream import open_stream, watch_stream
from flows.removal import delete_video
from flows.video_file import keepers_of
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from memory.delete_span import delete_span
from memory.kept_frames import ClipKeeping, VideoKeepers
from people.forget import forget, restore_forgotten
from perception.frame_keeper import FrameToKeep, KeptFrames
from perception.images import decode_stored
from store.database import Store
from store.home import Home
from store.queries.backup import video_records
from store.queries.percepts import add_blobs
from store.queries.videos import list_videos
from store.tables.schema import FrameRow, KeeperRow, KeyframeRow, SightingRow
from strategies.registry import all_strategies, find_strategy
from tests.support.full_suite import sample
from tests.support.full_video import fill
from tests.support.killed_runs import killed_at
from tests.support.light_models import light_toolbox
from tests.support.media import make_video
from tests.support.memory import WordVectors
from tests.support.reservoir_keeper import MOST, OLD_SIDE, RESERVOIR, SIDE
from tests.support.streams import Fed, segment

SECONDS, CLIP_MS = 26.0, 4_000
FULL = "f" * 16


@pytest.fixture
def workspace(home: Home, store: Store, tmp_path: Path) -> Workspace:
    """Models that see nothing, clips of four seconds, and a strategy that keeps frames."""
    tools = light_toolbox(tmp_path / "notes")
    watch = tools.profile.settings.watch.model_copy(update={"clip_ms": CLIP_MS})
    settings = tools.profile.settings.model_copy(update={"watch": watch})
    profile = tools.profile.model_copy(update={"settings": settings})
    return Workspace(home, store, profile, tools).with_memory_of(("worldmm",))


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return make_video(tmp_path / "talk.mp4", seconds=SECONDS, fps=10, audio=None, scene_s=3.0)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another keeper, which drops frames again, is at work as well."""

    def both(workspace: Workspace, video: Video) -> VideoKeepers:
        made = keepers_of(workspace, video)
        return replace(made, keepers={**made.keepers, "drawn": RESERVOIR})

    monkeypatch.setattr(clip_memory, "keepers_of", both)


def watch(workspace: Workspace, *paths: Path) -> None:
    for outcome in watch_files(workspace, paths, SilentListener(), direct=True):
        assert not outcome.error


def without_memory(workspace: Workspace) -> Workspace:
    memory = workspace.settings.memory.model_copy(update={"strategies": ()})
    settings = workspace.settings.model_copy(update={"memory": memory})
    return replace(workspace, profile=workspace.profile.model_copy(update={"settings": settings}))


def only_video(store: Store) -> Video:
    with store.begin() as session:
        (listed,) = list_videos(session)
    return listed


def frames(store: Store, builder: str = "worldmm") -> list[FrameRow]:
    row = FrameRow
    with store.begin() as session:
        query = select(row).where(row.builder == builder).order_by(row.time_ms)
        found = list(session.scalars(query))
        session.expunge_all()
    return found


def files(store: Store) -> set[str]:
    return {sha for sha, _ in store.blobs.walk()}


def kept(store: Store) -> list[dict[str, Any]]:
    with store.begin() as session:
        return [
            record
            for record in video_records(session, only_video(store).id)
            if record["row"] in ("keeper", "frame", "blob")
        ]


def test_a_frame_of_each_segment_is_kept_while_watching(workspace: Workspace, video: Path) -> None:
    watch(workspace, video)
    rows = frames(workspace.store)
    assert [row.time_ms // 10_000 for row in rows] == [0, 1, 2]
    assert [row.clip for row in rows] == [row.time_ms // CLIP_MS for row in rows]
    for row in rows:
        image = decode_stored(workspace.store.blobs.get(row.blob))
        assert image.shape[:2] == (row.height, row.width)
        assert row.reason == "the sharpest of ten seconds"


@pytest.mark.full
def test_workers_keep_the_same_frames(workspace: Workspace, video: Path, drawn: None) -> None:
    watch(workspace, video)
    alone = kept(workspace.store)
    delete_video(workspace.store, only_video(workspace.store).id)
    watch(workspace.with_workers(2, "processes"), video)
    assert kept(workspace.store) == alone


@pytest.mark.parametrize(
    ("point", "at"),
    sample(
        [(FaultPoint.CLIP_COMMITTED, 3)],
        product(
            (FaultPoint.CLIP_ROWS, FaultPoint.CLIP_COMMITTING, FaultPoint.CLIP_COMMITTED), (1, 3, 5)
        ),
    ),
)
def test_a_killed_run_goes_on_to_equal_frames(
    workspace: Workspace,
    video: Path,
    drawn: None,
    monkeypatch: pytest.MonkeyPatch,
    point: FaultPoint,
    at: int,
) -> None:
    with killed_at(monkeypatch, point, at):
        watch(workspace, video)
    watch(workspace, video)
    resumed = kept(workspace.store)
    delete_video(workspace.store, only_video(workspace.store).id)
    watch(workspace, video)
    assert kept(workspace.store) == resumed


@pytest.mark.full
@pytest.mark.parametrize("name", [one.name for one in all_strategies() if one.keeper is not None])
def test_every_strategy_goes_on_to_equal_frames_after_a_kill(
    workspace: Workspace, video: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    strategy = workspace.with_memory_of((name,))
    with killed_at(monkeypatch, FaultPoint.CLIP_COMMITTING, 4):
        watch(strategy, video)
    watch(strategy, video)
    resumed = kept(strategy.store)
    assert frames(strategy.store, name)
    delete_video(strategy.store, only_video(strategy.store).id)
    watch(strategy, video)
    assert kept(strategy.store) == resumed


def test_files_of_dropped_frames_go(workspace: Workspace, video: Path, drawn: None) -> None:
    watch(workspace, video)
    store = workspace.store
    assert len(frames(store, "drawn")) == MOST
    named = {record["sha256"] for record in kept(store) if record["row"] == "blob"}
    assert files(store) == named
    assert {row.blob for row in [*frames(store), *frames(store, "drawn")]} <= named


def test_a_keeper_that_names_a_frame_it_was_not_shown_is_named(
    workspace: Workspace, video: Path, drawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clip(*_: object) -> KeptFrames:
        return KeptFrames([FrameToKeep(0, "shown"), FrameToKeep(123, "made up")], {})

    monkeypatch.setattr(f"{__name__}.RESERVOIR", replace(RESERVOIR, keep=clip))
    with pytest.raises(ValueError, match=r"the keeper drawn keeps frames .* not shown: at 123 ms"):
        watch(workspace, video)


@pytest.mark.full
def test_frames_of_earlier_clips_are_changed_and_their_old_files_deleted(
    workspace: Workspace, video: Path, drawn: None
) -> None:
    watch(workspace, video)
    rows = frames(workspace.store, "drawn")
    last = max(row.clip for row in frames(workspace.store))
    old, new = ((row.reason, row.tier, max(row.width, row.height)) for row in rows[:1] + rows[-1:])
    assert rows[0].clip < last
    assert old == ("stayed", 2, OLD_SIDE)
    assert new == ("drawn", 1, SIDE) if rows[-1].clip == last else old
    for row in rows:
        image = decode_stored(workspace.store.blobs.get(row.blob))
        assert image.shape[:2] == (row.height, row.width)
    assert files(workspace.store) == {
        one["sha256"] for one in kept(workspace.store) if one["row"] == "blob"
    }


@pytest.mark.full
def test_a_changed_frame_that_was_deleted_meanwhile_is_passed_over(
    workspace: Workspace, video: Path, drawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the decision and the transaction a frame is deleted, and another one's file."""
    prepare, gone = ClipKeeping.prepare, list[int]()

    def deleted_after(keeping: ClipKeeping) -> None:
        prepare(keeping)
        with workspace.store.begin() as session:
            row = FrameRow
            of = (row.builder == "drawn", row.reason == "drawn")
            ids = list(session.scalars(select(row.id).where(*of).limit(1)))
            gone.extend(session.scalars(select(row.time_ms).where(row.id.in_(ids))))
            session.execute(delete(row).where(row.id.in_(ids)))

    monkeypatch.setattr(ClipKeeping, "prepare", deleted_after)
    watch(workspace, video)
    assert gone
    assert not {row.time_ms for row in frames(workspace.store, "drawn")} & set(gone)


def test_a_build_keeps_what_watching_would_have(workspace: Workspace, video: Path) -> None:
    watch(workspace, video)
    while_watching = kept(workspace.store)
    delete_video(workspace.store, only_video(workspace.store).id)
    watch(without_memory(workspace), video)
    assert build(workspace, "talk", find_strategy("worldmm"), lambda *_: None).remark == ""
    assert kept(workspace.store) == while_watching


@pytest.mark.full
def test_a_killed_build_goes_on_to_equal_frames(
    workspace: Workspace, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(without_memory(workspace), video)
    strategy = find_strategy("worldmm")
    with killed_at(monkeypatch, FaultPoint.BUILD_ROWS, 3):
        build(workspace, "talk", strategy, lambda *_: None)
    with workspace.store.begin() as session:
        assert session.scalars(select(KeeperRow.through_clip)).one() == 1
    build(workspace, "talk", strategy, lambda *_: None)
    assert [row.time_ms // 10_000 for row in frames(workspace.store)] == [0, 1, 2]


def test_where_the_file_is_gone_a_build_says_so(workspace: Workspace, video: Path) -> None:
    watch(without_memory(workspace), video)
    video.unlink()
    made = build(workspace, "talk", find_strategy("worldmm"), lambda *_: None)
    assert "its file is gone or has changed" in made.remark
    assert not frames(workspace.store)


@pytest.mark.full
def test_clips_of_a_file_watched_before_are_kept_by_a_build(
    workspace: Workspace, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose first clips were watched without the keeper: all frames come from the file."""
    with killed_at(monkeypatch, FaultPoint.CLIP_COMMITTED, 3):
        watch(without_memory(workspace), video)
    watch(workspace, video)
    assert [row.time_ms // 10_000 for row in frames(workspace.store)] == [0, 1, 2]


def test_frames_of_a_stream_are_kept_as_it_comes(workspace: Workspace, tmp_path: Path) -> None:
    fed = Fed(tmp_path / "feed", [segment(tmp_path, "live", 12.0, audio=None)])
    with (
        fed.feeding() as source,
        open_stream(workspace, source, stop=fed.stop, clock=fed.clock) as work,
    ):
        watch_stream(work, SilentListener(), direct=True)
    assert [row.time_ms // 10_000 for row in frames(workspace.store)] == [0, 1]


def test_frames_of_a_deleted_span_go_with_files(workspace: Workspace, video: Path) -> None:
    watch(workspace, video)
    store = workspace.store
    gone, *left = frames(store)
    span = TimeSpan.of(gone.time_ms, gone.time_ms + 1)
    delete_span(store, "talk", span, workspace.toolbox.text, workspace.settings.memory)
    assert [row.blob for row in frames(store)] == [row.blob for row in left]
    assert gone.blob not in files(store)
    assert {row.blob for row in left} <= files(store)
    with store.begin() as session:
        assert session.scalars(select(KeeperRow.state)).one() == {}
    assert build(workspace, "talk", find_strategy("worldmm"), lambda *_: None).remark == ""
    assert len(frames(store)) == 2


@pytest.mark.parametrize("meanwhile", [False, True])
def test_after_a_deletion_no_frame_comes_back_from_the_file(
    workspace: Workspace, video: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    watch(without_memory(workspace), video)
    prepare = ClipKeeping.prepare

    def deleted() -> None:
        settings = workspace.settings.memory
        span = TimeSpan.of(10_000, 11_000)
        delete_span(workspace.store, "talk", span, workspace.toolbox.text, settings)

    def deleted_after(keeping: ClipKeeping) -> None:
        prepare(keeping)
        deleted()

    if meanwhile:
        monkeypatch.setattr(ClipKeeping, "prepare", deleted_after)
    else:
        deleted()
    made = build(workspace, "talk", find_strategy("worldmm"), lambda *_: None)
    assert "were or may have been erased" in made.remark
    assert not frames(workspace.store)


def test_forgetting_one_deletes_all_frames_until_undone(store: Store, tmp_path: Path) -> None:
    """Any of them may show the person; a frame kept since is there after the undoing as well."""
    fill(store, FULL)
    with store.begin() as session:
        frame = session.scalars(select(FrameRow)).one()
        frame.blob = store.blobs.put(b"a frame of its own")
        add_blobs(session, FULL, {frame.blob: 9})
        for sighting in session.scalars(select(SightingRow)):
            sighting.blob = None
        for keyframe in session.scalars(select(KeyframeRow)):
            keyframe.blob = store.blobs.put(b"a keyframe")
        shown, carried = frame.blob, session.scalars(select(KeeperRow)).one().state
    forget(store, FULL, "0", WordVectors(), tmp_path / "undo.zip")
    with store.begin() as session:
        assert not list(session.scalars(select(FrameRow)))
        assert session.scalars(select(KeeperRow)).one().state == {}
        later = {"builder": "captions", "clip": 2, "time_ms": 61_000, "blob": "c" * 64}
        session.add(FrameRow(video_id=FULL, width=4, height=4, tier=0, reason="since", **later))
    assert shown not in files(store)
    restore_forgotten(store, FULL, tmp_path / "undo.zip")
    with store.begin() as session:
        found = list(session.scalars(select(FrameRow.time_ms).order_by(FrameRow.time_ms)))
        assert session.scalars(select(KeeperRow)).one().state == carried
    assert found == [31_000, 61_000]
    assert store.blobs.get(shown) == b"a frame of its own"
