"""Streams that are recorded: cited moments play, and what is deleted is in no recording."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from domain.errors import InputError
from domain.retention import RetainSettings, Tier
from domain.streams import StreamSettings
from domain.time import TimeSpan
from flows.cut import cut_moment
from flows.delete import delete_video_rows, delete_video_span
from flows.live_stream import open_stream, watch_stream
from flows.retention import retain
from flows.workspace import Workspace
from models.toolbox import Toolbox
from perception.source import probe
from store.database import Store
from store.home import Home
from store.queries.blobs import recordings_in
from store.queries.videos import find_video
from store.tables.schema import BlobRow, StreamClipRow
from tests.support.light_models import in_little_clips
from tests.support.streams import Fed, segment

ALL = TimeSpan.of(0, 10**9)


class Silent:
    """A listener that notes nothing."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_arguments: None


@pytest.fixture
def workspace(home: Home, store: Store, toolbox: Toolbox) -> Workspace:
    """Clips of two seconds, recorded."""
    stream = StreamSettings(gap_ms=500, waiting=5, connect_s=1, least_ms=400, record=True)
    return in_little_clips(home, store, toolbox, stream=stream)


@pytest.fixture
def camera(workspace: Workspace, tmp_path: Path) -> str:
    """A stream of eight seconds, with a key picture every 1.5; its id."""
    fed = Fed(tmp_path / "camera", [segment(tmp_path, "eight", 8.0, gop=15)])
    with (
        fed.feeding() as source,
        open_stream(workspace, source, stop=fed.stop, clock=fed.clock) as work,
    ):
        watch_stream(work, Silent(), direct=True)
    return work.video.id


def recorded(store: Store, video: str) -> list[int]:
    with store.begin() as session:
        return [one.clip for one in recordings_in(session, video, ALL)]


def files(store: Store, video: str) -> set[str]:
    """The recordings that are stored, whether a row names them or not."""
    with store.begin() as session:
        shas = session.scalars(select(BlobRow.sha256).where(BlobRow.video_id == video))
        named = session.scalars(select(StreamClipRow.recording))
        found = {sha for sha in (*shas, *named) if sha}
    return {
        sha for sha in found if store.blobs.exists(sha) and b"ftyp" in store.blobs.get(sha)[:12]
    }


def test_a_moment_is_cut_within_and_across_clips(store: Store, camera: str, tmp_path: Path) -> None:
    assert recorded(store, camera) == [0, 1, 2, 3]
    for span in (TimeSpan.of(2_500, 3_500), TimeSpan.of(1_200, 5_300)):
        out = tmp_path / "cut.mp4"
        cut = cut_moment(store, camera, span, out)
        assert cut.span.end_ms == span.end_ms
        assert span.start_ms - 1_001 <= cut.span.start_ms <= span.start_ms
        assert abs(probe(out).duration_ms - cut.span.length_ms) < 250


def test_nothing_of_a_deleted_span_is_left_in_a_recording(
    workspace: Workspace, store: Store, camera: str, tmp_path: Path
) -> None:
    before = files(store, camera)
    assert len(before) == 4
    with store.begin() as session:
        video = find_video(session, camera)
    delete_video_span(workspace, video, TimeSpan.of(2_100, 3_000))
    assert recorded(store, camera) == [3]
    assert len(files(store, camera)) == 1
    assert sum(store.blobs.exists(sha) for sha in before) == 1
    with pytest.raises(InputError, match="was not recorded then"):
        cut_moment(store, camera, TimeSpan.of(2_100, 3_000), tmp_path / "cut.mp4")


def test_a_deleted_stream_leaves_no_recording(store: Store, camera: str) -> None:
    before = files(store, camera)
    delete_video_rows(store, camera)
    assert not any(store.blobs.exists(sha) for sha in before)


def test_recordings_go_with_the_first_tier(workspace: Workspace, store: Store, camera: str) -> None:
    tier = Tier(after_days=1, keep="fewer", keyframes=10, side=10_000)
    changed = workspace.settings.model_copy(update={"retain": RetainSettings(tiers=(tier,))})
    aged = workspace.profile.model_copy(update={"settings": changed})
    later = Workspace(workspace.home, store, aged, workspace.toolbox)
    assert retain(later, datetime.now(UTC)).videos == ()
    (less,) = retain(later, datetime.now(UTC) + timedelta(days=2), dry_run=True).videos
    assert less.bytes > 1_000
    assert recorded(store, camera) == [0, 1, 2, 3]
    retain(later, datetime.now(UTC) + timedelta(days=2))
    assert recorded(store, camera) == []
    assert files(store, camera) == set()
