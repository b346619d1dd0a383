"""Topics are cut where the vectors turn; clips are shared out without gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.writers.labels import CutLimits, choose_cuts, depth_scores, split_at_cuts
from tests.support.memory import direction


def lines(*topics: tuple[int, int]) -> np.ndarray:
    return np.array([direction(topic) for topic, count in topics for _ in range(count)])


def test_the_deepest_dip_is_where_the_topic_turns() -> None:
    depth = depth_scores(lines((1, 10), (2, 12), (3, 9)))
    assert sorted(np.argsort(depth)[-2:] + 1) == [10, 22]
    assert choose_cuts(depth, [], CutLimits(0, 7, 4)) == [10, 22]


def test_one_topic_is_cut_no_more_than_asked() -> None:
    assert choose_cuts(depth_scores(lines((1, 30))), [], CutLimits(0, 7, 4)) == []
    assert choose_cuts(depth_scores(lines((1, 1))), [], CutLimits(2, 7, 4)) == []
    assert depth_scores(lines((1, 1))).shape == (0,)


def test_forced_cuts_come_first_and_the_limit_holds() -> None:
    depth = depth_scores(lines((1, 10), (2, 10), (3, 10)))
    assert choose_cuts(depth, [5], CutLimits(0, 2, 4))[0] == 5
    assert len(choose_cuts(depth, [5, 15, 25], CutLimits(0, 2, 4))) == 2
    assert choose_cuts(depth, [], CutLimits(0, 1, 4)) in ([10], [20])


def test_a_cut_inside_a_clip_gives_it_to_both_topics() -> None:
    of = [0] * 4 + [1] * 4 + [2] * 4
    assert split_at_cuts(of, [0, 1, 2], [6]) == [[0, 1], [1, 2]]


def test_a_cut_near_a_clip_s_edge_is_at_the_edge() -> None:
    of = [0] * 8 + [1] * 8 + [2] * 8
    for cut in (7, 8, 9, 10):
        assert split_at_cuts(of, [0, 1, 2], [cut]) == [[0], [1, 2]]


def test_silent_clips_belong_to_the_topic_they_lie_in() -> None:
    of = [0, 0, 0, 0, 3, 3, 3, 3]
    assert split_at_cuts(of, [0, 1, 2, 3, 4], [4]) == [[0, 1, 2], [3, 4]]
    assert split_at_cuts([], [5, 6], []) == [[5, 6]]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.data())
def test_runs_cover_every_clip_in_order_and_share_at_most_one(
    of: list[int], data: st.DataObject
) -> None:
    of = sorted(of)
    clips = list(range(13))
    at = sorted(data.draw(st.sets(st.integers(1, max(1, len(of) - 1)), max_size=7)))
    runs = split_at_cuts(of, clips, [cut for cut in at if cut < len(of)])
    assert sorted({clip for run in runs for clip in run}) == clips
    for run in runs:
        assert run == list(range(run[0], run[-1] + 1))
    for one, other in pairwise(runs):
        assert len(set(one) & set(other)) <= 1
        assert not set(one) <= set(other)
        assert not set(other) <= set(one)
        assert one[0] < other[0]
