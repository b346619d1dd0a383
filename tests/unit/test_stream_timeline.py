"""A live stream: time stamps, clips handed on, and keeping up step by step."""

from __future__ import annotations

import signal
from itertools import pairwise
from threading import Thread

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.door import until_stopped
from domain.media import Clip
from domain.streams import LEVELS, PictureTally, StreamSettings
from domain.time import TimeSpan
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from perception.live_clips import CapturedClip, ClipBuffer, DegradationPolicy, subsample_frames
from perception.parts import Timeline

WRAP_MS = (1 << 33) * 1000 // 90_000
JUMP_MS = StreamSettings().jump_ms
CLIP_MS = 30_000


def placed(stamps: list[int], start_ms: int = 0, now_ms: int = 0) -> list[int]:
    timeline = Timeline(JUMP_MS, start_ms)
    timeline.reset()
    return [timeline.to_video_ms("video", stamp, now_ms) for stamp in stamps]


def test_a_stream_that_begins_at_any_stamp_begins_at_no_time() -> None:
    assert placed([95_000_000, 95_000_040, 95_000_080]) == [0, 40, 80]


def test_stamps_that_wrap_around_or_begin_anew_take_no_time() -> None:
    assert placed([WRAP_MS - 40, WRAP_MS, 0, 40]) == [0, 40, 40, 80]
    assert placed([60_000, 60_040, 3, 43]) == [0, 40, 40, 80]


def test_a_leap_of_the_stamps_takes_as_long_as_the_clock_on_the_wall_says() -> None:
    timeline = Timeline(JUMP_MS)
    assert timeline.to_video_ms("video", 0, 0) == 0
    assert timeline.to_video_ms("video", 3_600_000, 40) == 40
    assert timeline.to_video_ms("video", 9_600_000, 90_000) == 90_000


def test_what_the_other_stream_still_brings_of_the_clock_before_is_placed_by_it() -> None:
    timeline = Timeline(JUMP_MS)
    timeline.to_video_ms("video", 50_000, 0)
    timeline.to_video_ms("audio", 49_800, 0)
    timeline.to_video_ms("video", 51_000, 0)
    assert timeline.to_video_ms("video", 0, 0) == 1_000
    assert timeline.to_video_ms("audio", 50_900, 0) == 900
    assert timeline.to_video_ms("audio", 20, 0) == 1_020
    assert timeline.to_video_ms("video", 40, 0) == 1_040


def test_a_new_connection_goes_on_where_the_clock_on_the_wall_is() -> None:
    timeline = Timeline(JUMP_MS, 30_000)
    timeline.reset()
    assert timeline.to_video_ms("video", 777, 95_000) == 95_000
    timeline.reset()
    assert timeline.to_video_ms("video", 0, 60_000) == 95_000


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["video", "audio"]),
            st.integers(0, 1 << 40),
            st.integers(0, 10_000_000),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_time_never_runs_back_beyond_disorder(steps: list[tuple[str, int, int, bool]]) -> None:
    timeline, now, last = Timeline(JUMP_MS), 0, 0
    for stream, stamp, passed, fresh in steps:
        now += passed
        if fresh:
            timeline.reset()
        at = timeline.to_video_ms(stream, stamp, now)
        assert at >= last - JUMP_MS
        assert at <= max(last + JUMP_MS, now)
        assert timeline.latest_ms >= last
        last = timeline.latest_ms


def clip(number: int) -> CapturedClip:
    span = TimeSpan.of(2_000 * number, 2_000 * number + 2_000)
    raw = RawClip(Clip(index=number, span=span), [], np.zeros(0, np.float32))
    return CapturedClip(raw, PictureTally(), 0, ())


def taken(buffer: ClipBuffer, *, wait: bool = True) -> int | None:
    found = buffer.get(wait=wait)
    return None if found is None else found.raw.clip.index


def test_clips_come_out_in_order_and_a_full_buffer_says_so() -> None:
    buffer = ClipBuffer(2)
    assert [buffer.put(clip(n), wait=False) for n in range(3)] == [True, True, False]
    assert len(buffer) == 2
    assert [taken(buffer) for _ in range(2)] == [0, 1]
    assert taken(buffer, wait=False) is None


def test_what_waits_for_room_goes_on_when_there_is_some() -> None:
    buffer = ClipBuffer(1)
    said: list[bool] = []
    buffer.put(clip(0), wait=False)
    thread = Thread(target=lambda: said.append(buffer.put(clip(1), wait=True)))
    thread.start()
    assert taken(buffer) == 0
    assert taken(buffer) == 1
    thread.join(5)
    assert said == [True]


def test_at_the_end_what_is_there_is_still_given_and_then_nothing() -> None:
    buffer = ClipBuffer(2)
    buffer.put(clip(0), wait=False)
    buffer.finish()
    assert [taken(buffer), taken(buffer)] == [0, None]


def test_nobody_waits_for_a_taker_that_has_left() -> None:
    buffer = ClipBuffer(1)
    said: list[bool] = []
    buffer.put(clip(0), wait=False)
    thread = Thread(target=lambda: said.append(buffer.put(clip(1), wait=True)))
    thread.start()
    buffer.cancel()
    thread.join(5)
    assert said == [False]
    assert buffer.put(clip(2), wait=True) is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_ctrl_c_ends_the_stream_and_the_second_everything(number: int) -> None:
    before = signal.getsignal(number)
    with until_stopped() as stop:
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt, match="run the same command to continue"):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def frames(changes: list[float]) -> list[Frame]:
    picture = av.VideoFrame(16, 16, "yuv420p")
    return [Frame(200 * i, FrameMetrics(c, 1.0, 1.0), picture) for i, c in enumerate(changes)]


def test_the_policy_thins_frames_first_and_leaves_stages_out_then() -> None:
    assert [level.share for level in LEVELS] == sorted((x.share for x in LEVELS), reverse=True)
    assert LEVELS[0].without == ()
    assert LEVELS[0].share == 1
    for lower, higher in pairwise(LEVELS):
        assert set(lower.without) <= set(higher.without)
        if higher.without:
            assert lower.share == LEVELS[-1].share


def test_slow_clips_go_up_a_level_each_and_easy_ones_come_back_down() -> None:
    pace = DegradationPolicy()
    assert [pace.update(40_000, CLIP_MS, 0) for _ in range(7)] == [1, 2, 3, 4, 5, 5, 5]
    assert [pace.update(20_000, CLIP_MS, 0) for _ in range(4)] == [5] * 4
    assert [pace.update(5_000, CLIP_MS, 0) for _ in range(6)] == [5, 5, 4, 4, 4, 3]


def test_clips_that_wait_are_a_sign_as_well() -> None:
    pace = DegradationPolicy()
    assert pace.update(10_000, CLIP_MS, waiting=2) == 1
    assert [pace.update(10_000, CLIP_MS, waiting=1) for _ in range(5)] == [1] * 5


def test_a_level_that_was_left_too_soon_is_stored_longer_the_next_time() -> None:
    pace, levels = DegradationPolicy(), []
    for _ in range(40):
        levels.append(pace.level)
        pace.update(1_000 if pace.level else 40_000, CLIP_MS, 0)
    ups = [at for at, (a, b) in enumerate(pairwise(levels)) if (a, b) == (0, 1)]
    assert [b - a for a, b in pairwise(ups)] == [4, 7, 13]


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 5)), max_size=60))
def test_a_level_moves_by_one_step_at_most(clips: list[tuple[int, int]]) -> None:
    pace = DegradationPolicy()
    for took, waiting in clips:
        before = pace.level
        assert abs(pace.update(took, CLIP_MS, waiting) - before) <= 1
        assert 0 <= pace.level < len(LEVELS)


def test_a_cut_between_frames_that_are_looked_at_is_not_lost() -> None:
    kept = subsample_frames(frames([0, 1, 90, 1, 1, 1, 1]), sampled_level=0, level=1)
    assert [frame.time_ms for frame in kept] == [0, 400, 800, 1200]
    assert [frame.metrics.change for frame in kept] == [0, 90, 1, 1]
    found = [frame.time_ms for frame in subsample_frames(frames([0, 99, 1, 1, 1, 3]), 0, 2)]
    assert found == [0, 1000]
    assert subsample_frames(frames([0, 99, 1, 1, 1, 3]), 0, 2)[1].metrics.change == 99


def test_what_was_thinned_when_it_came_is_not_thinned_again() -> None:
    assert len(subsample_frames(frames([0.0] * 10), sampled_level=2, level=4)) == 10
    assert subsample_frames([], sampled_level=0, level=3) == []
