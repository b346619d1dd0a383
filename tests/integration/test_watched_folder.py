"""Watching a folder: what is taken and when, what is told, and that nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import InputError, ModelError
from flows.ingest_video import open_video
from flows.schedules.fetching import file_stamp, media_stamps, unchanged_files
from flows.schedules.kinds import WatchOptions
from flows.schedules.work import JobReport, watch
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from models.toolbox import Toolbox
from perception.perceive_clip import perceive
from perception.source import video_id
from store.database import Store
from store.home import Home
from store.queries.videos import failed_items, list_videos
from tests.support.light_models import in_little_clips
from tests.support.media import make_video

Look = Callable[..., JobReport]


@pytest.fixture
def workspace(
    home: Home, store: Store, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    """A workspace that watches without a server, in clips of two seconds."""
    monkeypatch.setattr("flows.watching.connect_to_prefect", lambda *_: None)
    return in_little_clips(home, store, toolbox, background=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "videos"
    found.mkdir()
    return found


@pytest.fixture
def look(workspace: Workspace, folder: Path) -> Look:
    """One run of the schedule; ``meanwhile`` happens while it waits."""

    def run(meanwhile: Callable[[], object] = lambda: None) -> JobReport:
        options = WatchOptions(folder=folder, stable_s=5)

        def wait(_seconds: float) -> None:
            meanwhile()

        return watch(workspace, options, SilentListener(), wait)

    return run


def titles(workspace: Workspace) -> list[str]:
    with workspace.store.begin() as session:
        return sorted(video.title for video in list_videos(session))


def short(path: Path, seconds: float = 1.0) -> Path:
    return make_video(path, seconds=seconds)


def test_a_file_that_is_still_being_copied_is_taken_once_it_is_whole(
    workspace: Workspace, folder: Path, look: Look, tmp_path: Path
) -> None:
    data = short(tmp_path / "whole.mp4").read_bytes()
    path = folder / "talk.mp4"
    path.write_bytes(data[:1000])
    assert look(lambda: path.write_bytes(data[:2000])) == JobReport("nothing new")
    path.write_bytes(data)
    assert look() == JobReport("1 watched, 0 known already")
    assert (look(), titles(workspace)) == (JobReport("nothing new"), ["talk"])


def test_a_known_file_under_another_name_is_not_watched_again_and_a_gone_one_is_nothing(
    workspace: Workspace, folder: Path, look: Look
) -> None:
    path = short(folder / "talk.mp4")
    look()
    path.rename(folder / "renamed.mp4")
    assert look() == JobReport("0 watched, 1 known already")
    (folder / "renamed.mp4").unlink()
    assert (look(), titles(workspace)) == (JobReport("nothing new"), ["talk"])


def test_a_changed_file_is_another_video(workspace: Workspace, folder: Path, look: Look) -> None:
    path = short(folder / "talk.mp4")
    look()
    short(path, seconds=1.5)
    assert look() == JobReport("1 watched, 0 known already")
    assert titles(workspace) == ["talk", "talk"]


def test_a_bad_file_is_told_and_stops_none(workspace: Workspace, folder: Path, look: Look) -> None:
    (folder / "bad.mp4").write_text("no video")
    short(folder / "good.mp4")
    output = look()
    assert not output.ok
    assert output.text.startswith("1 watched, 0 known already; ")
    assert "bad.mp4: not a video" in output.text
    assert look() == JobReport("nothing new")
    with workspace.store.begin() as session:
        assert ["bad.mp4" in one.error for one in failed_items(session, 9)] == [True]
    (folder / "bad.mp4").write_text("another one that is no video")
    assert not look().ok


def test_a_video_that_somebody_watches_at_the_moment_is_left_for_the_next_look(
    workspace: Workspace, folder: Path, look: Look
) -> None:
    with open_video(workspace, short(folder / "talk.mp4")):
        assert "being watched by another" in look().text
    assert look() == JobReport("1 watched, 0 known already")


def test_a_video_whose_clips_fail_is_tried_again_as_often_as_by_hand(
    workspace: Workspace, folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(folder / "talk.mp4")
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())

    def never(*_args: object) -> None:
        raise ModelError("it is away")

    monkeypatch.setattr("perception.perceive_clip.perceive", never)
    tries = [look().text for _ in range(5)]
    assert ["clips are left" in text for text in tries] == [True, True, True, False, False]
    assert tries[-1] == "nothing new"
    monkeypatch.setattr("perception.perceive_clip.perceive", perceive)


def test_what_is_deleted_while_clips_of_it_fail_comes_back_only_by_hand(
    workspace: Workspace, folder: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.removal import delete_video_rows

    path = short(folder / "talk.mp4")
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())

    def never(*_args: object) -> None:
        raise ModelError("it is away")

    monkeypatch.setattr("perception.perceive_clip.perceive", never)
    assert "clips are left" in look().text
    monkeypatch.setattr("perception.perceive_clip.perceive", perceive)
    delete_video_rows(workspace.store, video_id(path))
    alone = JobReport(
        "0 watched, 0 known already; 1 left alone, since they were deleted from memory"
    )
    assert look() == alone
    assert look() == JobReport("nothing new")
    path.rename(folder / "under another name.mp4")
    assert look() == alone
    (again,) = watch_files(workspace, folder.iterdir(), SilentListener(), direct=True)
    assert (again.exit_code, len(titles(workspace))) == (0, 1)
    (folder / "under another name.mp4").rename(path)
    os.utime(path, ns=(1, 1))
    assert look() == JobReport("0 watched, 1 known already")


def test_what_was_deleted_stays_so(workspace: Workspace, folder: Path, look: Look) -> None:
    from flows.removal import delete_video_rows

    short(folder / "talk.mp4")
    look()
    with workspace.store.begin() as session:
        (video,) = list_videos(session)
    delete_video_rows(workspace.store, video.id)
    assert look() == JobReport("nothing new")


def test_a_folder_that_is_not_there_is_said(workspace: Workspace, folder: Path, look: Look) -> None:
    folder.rmdir()
    with pytest.raises(InputError, match="is no folder: make it"):
        look()


def test_only_media_that_holds_something_is_looked_at(folder: Path) -> None:
    (folder / "in").mkdir()
    for name in ("a.mp4", "in/b.MKV", ".hidden.mp4", "notes.txt", "copy.mp4.part"):
        (folder / name).write_text("x")
    (folder / "empty.mp4").touch()
    assert [stand.path.name for stand in media_stamps(folder)] == ["a.mp4", "b.MKV"]


@pytest.mark.parametrize("change", ["size", "time", "gone", "nothing"])
def test_settled_is_what_did_not_change(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.mp4"
    path.write_text("some")
    before = file_stamp(path)
    assert before is not None

    def meanwhile(seconds: float) -> None:
        assert seconds == 3
        if change == "size":
            path.write_text("more of it")
            os.utime(path, ns=(before.changed, before.changed))
        elif change == "time":
            os.utime(path, ns=(1, before.changed + 1))
        elif change == "gone":
            path.unlink()

    assert unchanged_files([before], 3, meanwhile) == ([before] if change == "nothing" else [])
