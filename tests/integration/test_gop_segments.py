"""A video in stretches that each decode by themselves: all of it, and nothing twice."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.settings import WatchSettings
from perception import parallel_decode
from perception.decode import RawClip, read_clips
from perception.gop_segments import GopSegments
from perception.source import clips_of, probe
from tests.support.full_suite import examples
from tests.support.media import make_video

SECONDS = WatchSettings(clip_ms=1_000)
INSTANTS = range(0, 6_400, 200)


@contextmanager
def stretches_of(path: Path, first: int = 0) -> Iterator[GopSegments]:
    info = probe(path)
    clips = clips_of(info.duration_ms, SECONDS)[first:]
    with closing(GopSegments(path, info, SECONDS, clips)) as stretches:
        yield stretches


@pytest.mark.parametrize("gop", [1, 5, 9])
@pytest.mark.parametrize("first", [0, 2])
def test_each_instant_is_in_one_stretch_and_in_its_clips(
    gop: int, first: int, tmp_path: Path
) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=6.4, gop=gop, b_frames=2, audio=None)
    found: list[int] = []
    with stretches_of(path, first) as stretches:
        for number in range(len(stretches.starts)):
            shown = [one.instant_ms for one in stretches.pictures(number, lambda: False)]
            clips = [first + clip for clip in stretches.clips(number)]
            assert {ms // 1_000 for ms in shown} <= set(clips)
            found += shown
    assert found == [ms for ms in INSTANTS if ms >= 1_000 * first]


def test_stretches_end_where_key_pictures_are_rare(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=6.4, gop=60, audio=None)
    with stretches_of(path) as stretches:
        starts = [stretches.start_ms(number) for number in range(len(stretches.starts))]
    # There is none in the half of a clip before the second: they are 2.4 s apart.
    assert starts[:7] == [0, 0, 0, None, None, None, None]


@pytest.mark.parametrize("seconds", [3, 9])
def test_a_last_clip_without_a_key_picture_of_its_own_is_read(
    seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound goes on for a little in a clip more, which shows what the clip before showed last."""
    asked = WatchSettings(clip_ms=3_000)
    path = make_video(tmp_path / "v.mp4", seconds=seconds, gop=25, scene_s=90, audio_start_ms=40)
    info = probe(path)
    apart = [content(raw) for raw in read_clips(path, info, asked)]
    assert len(apart) == seconds // 3 + 1
    monkeypatch.setattr(parallel_decode, "WORKERS", 1)
    assert [content(raw) for raw in read_clips(path, info, asked)] == apart


@pytest.mark.parametrize("workers", [1, 2])
def test_whoever_takes_a_clip_alone_holds_its_frames(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=6.4, gop=9, b_frames=2)
    monkeypatch.setattr(parallel_decode, "WORKERS", workers)
    for raw in read_clips(path, probe(path), SECONDS):
        frames = [weakref.ref(frame) for frame in raw.frames]
        assert frames
        raw.frames.clear()
        assert [frame for frame in frames if frame() is not None] == []


def keys_of(path: Path) -> list[tuple[int, int]]:
    """Where in the file its key pictures are, and of how many bytes."""
    with av.open(str(path)) as container:
        keys = [packet for packet in container.demux(video=0) if packet.is_keyframe]
        return [(key.pos, key.size) for key in keys if key.pos is not None]


def content(clip: RawClip) -> tuple[object, ...]:
    frames = [(f.time_ms, f.metrics, f.image.tobytes()) for f in clip.frames]
    return clip.clip, frames, clip.samples.tobytes(), clip.gaps, clip.error


@pytest.mark.parametrize("number", [5, 8])
def test_behind_a_key_picture_that_does_not_decode_one_decoding_goes_on(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it shows is what one decoding of the whole shows, which goes on from before."""
    path = make_video(tmp_path / "v.mp4", seconds=6.4, gop=9, b_frames=2, audio=None)
    (at, size), data = keys_of(path)[number], bytearray(path.read_bytes())
    # Its head is left, by which it is told to be a key picture.
    data[at + 8 : at + size] = bytes(size - 8)
    path.write_bytes(data)
    info = probe(path)
    apart = [content(raw) for raw in read_clips(path, info, SECONDS)]
    whole = parallel_decode.read_parallel(path, info, SECONDS, clips_of(info.duration_ms, SECONDS))
    assert len(list(whole)) < len(apart)
    monkeypatch.setattr(parallel_decode, "WORKERS", 1)
    assert [content(raw) for raw in read_clips(path, info, SECONDS)] == apart


FILES = st.fixed_dictionaries(
    {
        "seconds": st.sampled_from([3.0, 4.04, 6.4]),
        "fps": st.sampled_from([10, 24, 30]),
        "gop": st.sampled_from([1, 5, 12, 25]),
        "b_frames": st.sampled_from([0, 2]),
        "audio_start_ms": st.sampled_from([0, 40, 700]),
    }
)


@given(FILES, st.sampled_from(["mp4", "mkv", "ts"]), st.integers(0, 2), st.integers(350, 3_000))
@settings(max_examples=examples(3, 40), deadline=None)
def test_whatever_is_read_beside_is_what_one_decoding_shows(
    made: dict[str, Any], kind: str, first: int, clip_ms: int
) -> None:
    asked = WatchSettings(clip_ms=clip_ms)
    with TemporaryDirectory() as folder:
        path = make_video(Path(folder) / f"v.{kind}", size=(64, 48), **made)
        info = probe(path)
        apart = [content(raw) for raw in read_clips(path, info, asked, first)]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(parallel_decode, "WORKERS", 1)
            assert [content(raw) for raw in read_clips(path, info, asked, first)] == apart
