"""Trying failed clips again: one or all, by command and by flow, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import InputError, NotFound
from domain.media import ClipState, Video
from flows.jobs import clips_to_retry
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from models.toolbox import Toolbox
from perception.source import video_id
from store.database import Store
from store.home import Home
from store.queries.clips import clips_of, mark_clip
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.videos import FAILED, WATCHING, add_video, set_video_state, video_state
from tests.support.commands import run as homer
from tests.support.light_models import in_little_clips
from tests.support.media import make_video
from tests.support.memory import clip


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return make_video(tmp_path / "film.mp4", seconds=7.0)


@pytest.fixture
def workspace(
    home: Home, store: Store, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    """A workspace with clips of two seconds, which the commands use too."""
    found = in_little_clips(home, store, toolbox)
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    monkeypatch.setattr("flows.workspace.load_profile", lambda _name, _config: found.profile)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    return found


@pytest.fixture
def broken(workspace: Workspace, recording: Path) -> str:
    """A film of four clips, of which the second and third failed for good."""
    (outcome,) = watch_files(workspace, [recording], SilentListener(), direct=True)
    name = outcome.video
    with workspace.store.begin() as session:
        for index in (1, 2):
            for _ in range(MAX_ATTEMPTS):
                mark_clip(session, name, index, ClipState.FAILED, "the model was away")
        set_video_state(session, name, FAILED, "2 clips could not be watched")
    return name


def states(workspace: Workspace, name: str) -> list[str]:
    with workspace.store.begin() as session:
        return [str(one.state) for one in clips_of(session, name)]


def state(workspace: Workspace, name: str) -> str:
    with workspace.store.begin() as session:
        found = video_state(session, name)
    assert found is not None
    return found.state


def test_one_clip_is_tried_again_and_then_the_rest(workspace: Workspace, broken: str) -> None:
    one = homer("retry", "film", "--clip", "2", "--direct")
    assert one.exit_code == 4
    assert "1 of 4 clips" in one.stdout
    assert states(workspace, broken) == ["done", "failed", "done", "done"]
    assert state(workspace, broken) == FAILED
    rest = homer("retry", "film", "--direct")
    assert rest.exit_code == 0, rest.stderr
    assert (states(workspace, broken), state(workspace, broken)) == (["done"] * 4, "done")
    nothing = homer("retry", "film", "--direct")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no clip of film has failed" in nothing.stderr


def test_a_paused_video_stays_so_when_a_clip_is_tried(workspace: Workspace, broken: str) -> None:
    with workspace.store.begin() as session:
        mark_clip(session, broken, 3, ClipState.PENDING)
        set_video_state(session, broken, WATCHING)
    homer("retry", "film", "--clip", "1", "--direct")
    assert states(workspace, broken) == ["done", "done", "failed", "pending"]
    assert state(workspace, broken) == WATCHING


@pytest.mark.parametrize(("index", "output"), [(0, "clip 0 of film has not failed"), (9, "clip 9")])
def test_sound_clip_is_refused(workspace: Workspace, broken: str, index: int, output: str) -> None:
    refused = homer("retry", "film", "--clip", str(index))
    assert refused.exit_code == 2
    assert output in refused.stderr
    assert "(failed: 1, 2)" in refused.stderr


@pytest.mark.full
def test_clips_that_a_broken_run_got_done_are_passed(workspace: Workspace, broken: str) -> None:
    """The same command goes on where it was, as it says when it is stopped."""
    with workspace.store.begin() as session:
        mark_clip(session, broken, 1, ClipState.DONE)
    again = homer("retry", "film", "--clip", "1", "--clip", "2", "--direct")
    assert again.exit_code == 0, again.stderr
    assert states(workspace, broken) == ["done"] * 4
    nothing = homer("retry", "film", "--clip", "1", "--clip", "2", "--direct")
    assert nothing.exit_code == 2
    assert "clip 1 of film has not failed (failed: none)" in nothing.stderr


def test_a_file_that_is_gone_is_told(workspace: Workspace, broken: str, recording: Path) -> None:
    aside = recording.rename(recording.with_name("aside.mp4"))
    with pytest.raises(InputError, match=r"film\.mp4 any more: put it back"):
        clips_to_retry(workspace.store, broken)
    make_video(recording, seconds=1.0)
    with pytest.raises(InputError, match="is another file by now"):
        clips_to_retry(workspace.store, broken)
    assert clips_to_retry(workspace.store, broken, compare=False).indices == (1, 2)
    aside.replace(recording)
    assert video_id(recording) == broken
    assert clips_to_retry(workspace.store, broken, [2]).indices == (2,)


def test_what_was_made_from_captions_cannot_be_watched_again(store: Store) -> None:
    with store.begin() as session:
        video = Video(id="a" * 16, title="lecture", path=None, duration_ms=30_000)
        add_video(session, video, [clip(0)], {})
    with pytest.raises(InputError, match="lecture has no file"):
        clips_to_retry(store, "lecture")
    with pytest.raises(NotFound):
        clips_to_retry(store, "nothing")
