"""A live stream: time stamps, clips handed on, and keeping up step by step."""

from __future__ import annotations

import signal
from itertools import pairwise
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.door import until_stopped
from domain.errors import DatabaseError, HomerError, ModelError
from domain.media import LEVELS, Clip, Gap, GapReason, PictureTally, StreamClip, StreamSettings
from domain.settings import WorkSettings
from domain.time import TimeSpan
from flows.live_stream import StreamIngestion, follow_stream
from flows.perception_workers import WorkerPool
from flows.watching import Listener
from library.memory import describe_gap, describe_watching
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from perception.live_clips import CapturedClip, ClipBuffer, DegradationPolicy, subsample_frames
from perception.parts import Timeline
from tests.support.eager_steps import EAGER

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


# The order in which clips of a stream are watched, what comes of failures, and how it is told.


EVERY = 3
"""Clips after which the event graph is brought up to date."""


class Source:
    """A stream of so many clips. ``late`` ones are there only for whoever waits for them.

    ``left`` are those that an earlier run left in hand; ``fails`` says which step of which fails.
    """

    def __init__(
        self,
        clips: int,
        late: frozenset[int] = frozenset(),
        left: int = 0,
        fails: dict[str, HomerError] | None = None,
    ) -> None:
        self.coming, self.late, self.fails = list(range(left, clips)), late, fails or {}
        self.left = list(range(left))
        self.notes = list[str]()
        self.given_up, self.told = list[int](), list[int]()
        memory = SimpleNamespace(patch_every=EVERY)
        self.workspace = SimpleNamespace(settings=SimpleNamespace(memory=memory))
        self.video = None

    def taken(self) -> list[int]:
        return self.left

    def take_up(self, *, wait: bool) -> int | None:
        if not self.coming or (self.coming[0] in self.late and not wait):
            return None
        return self.coming.pop(0)

    def give_up(self, clip: int, _: ModelError) -> None:
        self.given_up.append(clip)

    def _do(self, step: str) -> None:
        self.notes.append(step)
        if (error := self.fails.get(step)) is not None:
            raise error

    def perceive(self, clip: int) -> None:
        self._do(f"perceive {clip}")

    def remember(self, clip: int) -> None:
        self._do(f"remember {clip}")

    def build_windows(self, *, final: bool) -> None:
        assert not final
        self.notes.append("build windows")

    def remembered(self, _: object, clip: int) -> None:
        self.told.append(clip)

    def failed(self, _: object, clip: int, error: ModelError) -> None:
        self.told.append(-clip)

    def follow(self, most: int | None = None) -> bool:
        """Watches it by itself; whether more may come."""
        work, pool = cast(StreamIngestion, self), WorkerPool(WorkSettings())
        return follow_stream(work, EAGER, pool, cast(Listener, self), most)


def test_the_next_clip_is_perceived_before_one_is_remembered_if_it_is_there() -> None:
    source = Source(3)
    assert not source.follow()
    assert source.notes == [
        *("perceive 0", "perceive 1", "remember 0", "perceive 2", "remember 1", "remember 2"),
        "build windows",
    ]


@given(st.integers(0, 9), st.frozensets(st.integers(0, 8)), st.integers(0, 3))
def test_each_clip_is_watched_in_order(clips: int, late: frozenset[int], left: int) -> None:
    source = Source(max(clips, left), late, left)
    assert not source.follow()
    order = list(range(max(clips, left)))
    for step in ("perceive", "remember"):
        assert [int(n.split()[1]) for n in source.notes if n.startswith(step)] == order
    assert source.told == order
    assert source.notes.count("build windows") == len(order) // EVERY


@given(st.integers(0, 9), st.frozensets(st.integers(0, 8)), st.integers(1, 4))
def test_runs_of_few_clips_do_as_one_run_does(clips: int, late: frozenset[int], most: int) -> None:
    source, runs = Source(clips, late), 0
    while source.follow(most):
        runs += 1
    assert source.told == list(range(clips))
    assert runs == clips // most


def test_a_run_takes_no_clip_that_it_will_not_watch() -> None:
    source = Source(5)
    assert source.follow(2)
    assert (source.coming, source.notes[-1]) == ([2, 3, 4], "remember 1")


@pytest.mark.parametrize("step", ["perceive", "remember"])
def test_a_clip_that_a_model_fails_on_is_given_up_and_the_stream_goes_on(step: str) -> None:
    source = Source(4, fails={f"{step} 2": ModelError("the model did not answer")})
    assert not source.follow()
    assert (source.given_up, source.told) == ([2], [0, 1, -2, 3])
    assert ("remember 2" in source.notes) is (step == "remember")
    assert source.notes.count("build windows") == 1


def test_a_database_that_is_gone_ends_it() -> None:
    source = Source(4, fails={"remember 1": DatabaseError("the database is away")})
    with pytest.raises(DatabaseError):
        source.follow()
    assert (source.given_up, source.told) == ([], [0])


def watched(level: int = 0, lag_ms: int | None = None, **tally: int) -> str:
    return describe_watching(
        StreamClip(clip=0, level=level, lag_ms=lag_ms, tally=PictureTally(**tally))
    )


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"came": 750, "sampled": 150}, "750 frames came, 150 looked at"),
        ({"came": 5, "damaged": 2}, "5 frames came, 0 looked at, 2 did not decode"),
        ({"lag_ms": 12_040}, "0 frames came, 0 looked at; lag 12.0 s"),
        ({"lag_ms": 0}, "0 frames came, 0 looked at; lag 0.0 s"),
        ({"level": 1}, "0 frames came, 0 looked at; level 1: 50% of the samples"),
        (
            {"level": 3, "lag_ms": 500},
            "0 frames came, 0 looked at; level 3: 20% of the samples, without objects, screen; "
            "lag 0.5 s",
        ),
    ],
)
def test_how_a_clip_was_watched_in_words(given: dict[str, Any], output: str) -> None:
    assert watched(**given) == output


@pytest.mark.parametrize("reason", GapReason)
def test_a_gap_has_its_reason_and_what_came_in_it(reason: GapReason) -> None:
    gap = Gap(span=TimeSpan.of(0, 5), reason=reason)
    assert describe_gap(gap) == reason.value
    assert describe_gap(gap.model_copy(update={"frames": 7})) == f"{reason.value} (7 frames)"
