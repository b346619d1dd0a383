"""Live sources followed: pipes, HLS and RTSP, breaking off and coming back, each frame counted."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from domain.media import GapReason
from perception.live import SourceUnreachable, live_source
from perception.live_clips import CapturedClip, ClipBuffer
from perception.live_reader import LiveReader, open_source
from tests.support.streams import (
    BEGAN_MS,
    SMALL,
    Camera,
    Fed,
    Hands,
    collected,
    playlist,
    segment,
    served,
    spans,
    told_gaps,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@pytest.fixture(scope="module")
def five(folder: Path) -> bytes:
    """Five seconds, 50 frames."""
    return segment(folder, "five", 5.0)


def came(clips: list[CapturedClip], follower: LiveReader) -> int:
    gaps = [*follower.pending_gaps, *(gap for clip in clips for gap in clip.gaps)]
    return sum(c.tally.came for c in clips) + sum(gap.frames for gap in gaps)


def test_a_pipe_is_cut_into_clips_and_no_frame_is_lost(tmp_path: Path, five: bytes) -> None:
    clips, follower = Fed(tmp_path / "p", [five]).collect()
    assert spans(clips) == [(0, 20), (20, 40), (40, 50)]
    assert [len(clip.raw.samples) // 1_600 for clip in clips] == [20, 20, 10]
    assert [clip.raw.clip.index for clip in clips] == [0, 1, 2]
    assert [clip.raw.error for clip in clips] == [None] * 3
    assert all(0 < len(clip.raw.frames) <= 4 for clip in clips)
    assert (came(clips, follower), told_gaps(clips)) == (50, [])
    assert all(clip.can_wait for clip in clips)


def test_tries_to_connect_again_come_ever_more_slowly(tmp_path: Path, five: bytes) -> None:
    stop = Event()
    clock = Hands()
    place = tmp_path / "gone.m3u8"
    pieces = [playlist(["0.ts"], end=False), five]

    def answer(path: str) -> bytes | int:
        if not pieces:
            return 404
        return pieces.pop(0)

    with served(answer) as host:
        source = live_source(f"http://{host}/{place.name}")
        clips, _ = collected(source, clock=clock, stop=stop, max_outage_s=150)
    assert clock.waits[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert spans(clips) == [(0, 20), (20, 40), (40, 50)]


def test_a_break_ends_its_clip_early(tmp_path: Path, folder: Path) -> None:
    """3.2 s come, 0.8 s are missing: nothing of the second clip is after 3.2 s."""
    one = segment(folder, "short", 3.2)
    clips, _ = Fed(tmp_path / "p", [one, one], away_s=3).collect()
    assert told_gaps(clips) == [(32, 40, "LOST")]
    assert spans(clips)[:3] == [(0, 20), (20, 32), (40, 60)]


def test_what_returns_within_a_clips_time_goes_on_in_it(tmp_path: Path, folder: Path) -> None:
    long = SMALL.model_copy(update={"watch": SMALL.watch.model_copy(update={"clip_ms": 20_000})})
    one = segment(folder, "piece", 3.0)
    clips, follower = Fed(tmp_path / "p", [one, one], away_s=6).collect(settings=long)
    assert (spans(clips), told_gaps(clips)) == ([(0, 100)], [(30, 70, "LOST")])
    (gap,) = clips[0].gaps
    assert not any(
        gap.span.start_ms <= frame.time_ms < gap.span.end_ms for frame in clips[0].raw.frames
    )
    assert came(clips, follower) == 60


@pytest.mark.parametrize("missing", ["audio", "codec"])
def test_sound_alone_and_pictures_alone(tmp_path: Path, folder: Path, missing: str) -> None:
    data = segment(folder, f"no_{missing}", 4.0, **{missing: None})
    clips, _ = Fed(tmp_path / "p", [data]).collect()
    assert spans(clips)[:2] == [(0, 20), (20, 40)]
    assert all(bool(clip.raw.frames) == (missing == "audio") for clip in clips)
    assert all(bool(clip.raw.samples.any()) == (missing == "codec") for clip in clips)


def test_damaged_pictures_are_counted_and_the_rest_is_watched(tmp_path: Path, five: bytes) -> None:
    data = bytearray(five)
    middle = len(data) // 2
    data[middle : middle + 4_000] = os.urandom(1) * 4_000
    clips, follower = Fed(tmp_path / "p", [bytes(data)]).collect()
    assert 40 <= came(clips, follower) <= 50
    assert spans(clips)[0] == (0, 20)
    assert spans(clips)[-1][1] >= 50


def test_hls_with_a_password_is_watched_and_nothing_tells_the_password(folder: Path) -> None:
    parts = [
        segment(folder, f"part{i}", 2.0, video_start_ms=2_000 * i, audio_start_ms=2_000 * i)
        for i in range(2)
    ]

    def answer(path: str) -> bytes | int:
        assert "hunter2" not in path
        if path.startswith("/live.m3u8"):
            return playlist(["0.ts", "1.ts"], end=True)
        return parts[int(path[1])]

    with served(answer) as host:
        clips, follower = collected(live_source(f"http://me:hunter2@{host}/live.m3u8"))
    assert (spans(clips)[:2], came(clips, follower)) == ([(0, 20), (20, 40)], 40)
    assert "hunter2" not in repr(follower)


def test_rtsp_is_watched_and_comes_back_after_the_camera_was_off(five: bytes) -> None:
    camera, clock = Camera([five, five]), Hands()
    clock.then = lambda: setattr(clock, "ms", max(clock.ms, BEGAN_MS + 30_000))
    source = live_source(f"rtsp://me:hunter2@{camera.place}/live")
    clips, _ = collected(source, clock=clock, max_outage_s=40)
    ((begins, *gap),) = told_gaps(clips)
    assert begins in (49, 50)
    assert gap == [300, "LOST"]
    assert [begin for begin, _ in spans(clips)[3:]] == [300, 320, 340]
    assert not any("hunter2" in line for line in camera.seen)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://me:hunter2@127.0.0.1:9/x.m3u8", "refused.*check the address"),
        ("rtsp://me:hunter2@127.0.0.1:9/x", "refused.*check the address"),
        ("http://me:hunter2@no.such.host.invalid/x", "cannot be reached"),
        ("/dev/null", "cannot be reached.*camera"),
    ],
)
def test_a_silent_source_gives_one_line_that_says_what_to_do(address: str, said: str) -> None:
    with pytest.raises(SourceUnreachable, match=said) as refused:
        open_source(live_source(address), SMALL, lambda: False)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_server_that_refuses_is_reported_in_one_line(status: int) -> None:
    with served(lambda _path: status) as host, pytest.raises(SourceUnreachable) as refused:
        open_source(live_source(f"http://me:hunter2@{host}/x.m3u8"), SMALL, lambda: False)
    assert "hunter2" not in str(refused.value)
    assert ("password" in str(refused.value)) == (status == 401)


def test_an_answer_that_is_no_stream_is_reported(tmp_path: Path) -> None:
    page = b"<html>sign in</html>" * 500
    output = pytest.raises(SourceUnreachable, match="neither video nor audio")
    with served(lambda _path: page) as host, output:
        open_source(live_source(f"http://{host}/x"), SMALL, lambda: False)


def test_a_playlist_may_not_name_files_of_this_machine(tmp_path: Path, five: bytes) -> None:
    (tmp_path / "secret.ts").write_bytes(five)
    lines = playlist([f"file://{tmp_path}/secret.ts"], end=True)
    with served(lambda _path: lines) as host, pytest.raises(SourceUnreachable):
        open_source(live_source(f"http://{host}/x.m3u8"), SMALL, lambda: False)


def test_where_nobody_keeps_up_clips_are_left_out_and_counted(tmp_path: Path, five: bytes) -> None:
    """A network source far behind the clock, and a buffer with room for one clip."""
    camera = Camera([five + five])
    source = live_source(f"rtsp://{camera.place}/live")
    clips, follower = collected(source, clock=Hands(seconds=1_000), max_outage_s=0, buffer=Full(1))
    assert [clip.raw.clip.index for clip in clips] == [0]
    gaps = [gap for gap in follower.pending_gaps if gap.reason is GapReason.OVERRUN]
    assert len(gaps) >= 3
    assert all(gap.frames > 0 for gap in gaps)
    assert 97 <= came(clips, follower) <= 100


class Full(ClipBuffer):
    """A buffer that nobody takes from meanwhile, not even at the end."""

    def put(self, clip: CapturedClip, *, wait: bool) -> bool:
        del wait
        return super().put(clip, wait=False)
