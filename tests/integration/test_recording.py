"""What of a live source is recorded, so that it can be played."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from sqlalchemy import select

from domain.errors import InputError
from domain.media import StreamSettings
from domain.settings import RetainSettings, Tier
from domain.time import TimeSpan
from flows.live_stream import open_stream, watch_stream
from flows.removal import delete_video_rows, delete_video_span, retain
from flows.video_file import cut_moment
from flows.workspace import Workspace
from models.toolbox import Toolbox
from perception.live_clips import CapturedClip
from perception.recording import ClipRecording
from perception.source import probe
from store.database import Store
from store.home import Home
from store.queries.blobs import recordings_in
from store.queries.videos import find_video
from store.tables.schema import BlobRow, StreamClipRow
from tests.support.light_models import in_little_clips
from tests.support.media import COLOURS, make_video
from tests.support.streams import SMALL, Fed, segment

RECORDED = SMALL.model_copy(update={"stream": SMALL.stream.model_copy(update={"record": True})})


def recordings(clips: list[CapturedClip]) -> list[ClipRecording]:
    return [clip.recording for clip in clips if clip.recording is not None]


def shown(recording: ClipRecording) -> list[tuple[int, int]]:
    """Video time of each picture, in tenths of a second, and the place of its colour in COLOURS."""
    found = []
    with av.open(io.BytesIO(recording.mp4), "r") as container:
        zero = (container.start_time or 0) / 1_000_000
        for frame in container.decode(video=0):
            middle = frame.to_ndarray(format="rgb24").reshape(-1, 3).astype(float).mean(axis=0)
            colour = int(np.abs(np.array(COLOURS) - middle).sum(axis=1).argmin())
            found.append(
                (round((recording.start_ms + 1000 * ((frame.time or 0) - zero)) / 100), colour)
            )
    return found


@pytest.mark.parametrize("gop", [10, 15, 60])
@pytest.mark.parametrize("b_frames", [0, 2])
def test_each_clip_is_recorded_from_key_picture_on(tmp_path: Path, gop: int, b_frames: int) -> None:
    fed = Fed(tmp_path / "cam", [segment(tmp_path, "a", 6.0, gop=gop, b_frames=b_frames)])
    clips, _ = fed.collect(settings=RECORDED)
    made = recordings(clips)
    assert len(made) == len(clips) == 3
    for clip, recording in zip(clips, made, strict=True):
        span = clip.raw.clip.span
        pictures = shown(recording)
        assert recording.start_ms <= span.start_ms + 250
        inside = [(at, n) for at, n in pictures if span.start_ms <= 100 * at < span.end_ms]
        assert len(inside) >= span.length_ms // 100 - 2
        assert all(colour == (at // 10) % len(COLOURS) for at, colour in inside if at % 10)


def test_sound_is_recorded_too(tmp_path: Path) -> None:
    clips, _ = Fed(tmp_path / "cam", [segment(tmp_path, "a", 4.0)]).collect(settings=RECORDED)
    for clip, recording in zip(clips, recordings(clips), strict=True):
        with av.open(io.BytesIO(recording.mp4), "r") as container:
            frames = list(container.decode(audio=0))
        seconds = sum(frame.samples / frame.sample_rate for frame in frames)
        assert abs(seconds - clip.raw.clip.span.length_ms / 1000) < 1.3


def test_after_a_break_it_goes_on_and_what_came_before_is_not_lost(tmp_path: Path) -> None:
    pieces = [segment(tmp_path, "a", 3.0), segment(tmp_path, "b", 3.0)]
    clips, _ = Fed(tmp_path / "cam", pieces, away_s=4).collect(settings=RECORDED)
    made = recordings(clips)
    assert len(made) == len(clips)
    for clip, recording in zip(clips, made, strict=True):
        span = clip.raw.clip.span
        inside = [at for at, _ in shown(recording) if span.start_ms <= 100 * at < span.end_ms]
        assert len(inside) >= span.length_ms // 100 - 3


def test_what_no_mp4_can_hold_is_said_and_the_rest_is_recorded(tmp_path: Path) -> None:
    said: list[str] = []
    options: dict[str, Any] = {"settings": RECORDED, "on_message": said.append}
    webm = make_video(tmp_path / "a.webm", seconds=2.0, codec="libvpx", audio="libopus")
    clips, _ = Fed(tmp_path / "cam", [webm.read_bytes()]).collect(**options)
    assert recordings(clips) == []
    assert "it is not recorded: MP4 cannot hold vp8" in said[0]


def test_nothing_is_recorded_unless_it_is_asked_for(tmp_path: Path) -> None:
    clips, _ = Fed(tmp_path / "cam", [segment(tmp_path, "a", 2.0)]).collect()
    assert recordings(clips) == []


# Streams that are recorded: cited moments play, and what is deleted is in no recording.


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
