"""What of a live source is recorded, so that it can be played."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from perception.live_clips import CapturedClip
from perception.recording import ClipRecording
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
