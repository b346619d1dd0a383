"""Time stamps that leap, wrap around or begin anew, on a timeline that never runs backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.streams import StreamSettings
from perception.parts import Timeline

WRAP_MS = (1 << 33) * 1000 // 90_000
JUMP_MS = StreamSettings().jump_ms


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


def test_a_short_pause_by_the_stamps_is_believed() -> None:
    assert placed([0, 40, 7_040]) == [0, 40, 7_040]


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
def test_time_never_runs_backwards_by_more_than_disorder(
    steps: list[tuple[str, int, int, bool]],
) -> None:
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
