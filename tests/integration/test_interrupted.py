"""A stream whose process was killed is ended by whatever looks next, and may go on."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.media import Stream, Video
from flows.video_locks import end_interrupted_streams
from store.advisory_locks import claim_video
from store.database import Store
from store.files import file_lock
from store.queries.videos import add_stream, add_video, set_video_state, video_state

DOOR, FILE = "d" * 16, "f" * 16


@pytest.fixture
def killed(store: Store) -> Store:
    """A stream and a file that were being watched when their processes were killed."""
    reported: dict[str, Any] = {"path": None, "duration_ms": 0, "profile": "local"}
    with store.begin() as session:
        for name in (DOOR, FILE):
            add_video(session, Video(id=name, title=name[:1], **reported), (), {})
        add_stream(session, DOOR, Stream(source="rtsp://door.local/live", began_ms=1))
    return store


def state(store: Store, video: str) -> str:
    with store.begin() as session:
        found = video_state(session, video)
    assert found is not None
    return found.state


def test_a_killed_stream_is_ended_and_a_file_is_left_to_go_on(killed: Store) -> None:
    assert end_interrupted_streams(killed) == [DOOR]
    assert (state(killed, DOOR), state(killed, FILE)) == ("done", "watching")
    assert end_interrupted_streams(killed) == []
    with killed.begin() as session:
        set_video_state(session, DOOR, "watching")  # As the same `homer watch` does.
    assert end_interrupted_streams(killed) == [DOOR]


def test_a_stream_that_somebody_watches_goes_on(killed: Store) -> None:
    with claim_video(killed, DOOR) as ours:
        assert ours
        assert end_interrupted_streams(killed) == []
    # Where the database was started anew the claim is gone; the lock of this machine is not.
    with file_lock(killed.home.run / f"watch-{DOOR}.lock"):
        assert end_interrupted_streams(killed) == []
    assert state(killed, DOOR) == "watching"


def test_the_commands_show_it_as_what_it_is(killed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", killed.url)

    def homer(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        return done.output

    assert homer("show", "d").splitlines()[0].endswith("paused")
    homer("check", "d")
    assert homer("show", "d").splitlines()[0].endswith("done")
    assert homer("show", "f").splitlines()[0].endswith("paused")
