"""Keeping up with a stream: fewer frames, then fewer stages, and back again, step by step."""

from __future__ import annotations

from itertools import pairwise

import av
from hypothesis import given
from hypothesis import strategies as st

from domain.streams import LEVELS
from perception.frames import Frame, FrameMetrics
from perception.live_clips import DegradationPolicy, subsample_frames

CLIP_MS = 30_000


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
    pace = DegradationPolicy()
    levels = []
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
    assert [frame.time_ms for frame in subsample_frames(frames([0, 99, 1, 1, 1, 3]), 0, 2)] == [
        0,
        1000,
    ]
    assert subsample_frames(frames([0, 99, 1, 1, 1, 3]), 0, 2)[1].metrics.change == 99


def test_what_was_thinned_when_it_came_is_not_thinned_again() -> None:
    assert len(subsample_frames(frames([0.0] * 10), sampled_level=2, level=4)) == 10
    assert subsample_frames([], sampled_level=0, level=3) == []
