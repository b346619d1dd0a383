"""Where MemDreamer's rules cut a window into episodes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import TimeSpan
from strategies.memdreamer.episodes import CONTEXT_MS, Lengths, Matrix, episode_ends

MINUTE = 60_000
LINE = 5_000
LENGTHS = Lengths(3 * MINUTE, 8 * MINUTE)


def lines(*minutes: float, seed: int = 0, noise: float = 1.0) -> tuple[list[int], Matrix]:
    """Return lines of 5 s each: so many minutes of one subject, so many of the next, ..."""
    dice = np.random.default_rng(seed)
    counts = [round(one * MINUTE / LINE) for one in minutes]
    subjects = np.repeat(dice.normal(size=(len(counts), 32)), counts, axis=0)
    rows = subjects + noise * dice.normal(size=subjects.shape)
    starts = [place * LINE for place in range(len(rows))]
    return starts, rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cut(starts: list[int], vectors: Matrix, *, ended: bool = False) -> list[int]:
    return cut_at(starts, vectors, len(starts) * LINE, ended=ended)


def cut_at(
    starts: list[int], vectors: Matrix, end_ms: int = 8 * MINUTE, *, ended: bool = False
) -> list[int]:
    return episode_ends(TimeSpan.of(0, end_ms), starts, vectors, LENGTHS, ended=ended)


@pytest.mark.parametrize("seed", range(5))
def test_an_episode_ends_where_the_subject_changes(seed: int) -> None:
    ends = cut(*lines(3.5, 5, 1.5, seed=seed))
    assert np.allclose(ends, [3.5 * MINUTE, 8.5 * MINUTE], atol=LINE)


@pytest.mark.parametrize("seed", range(5))
def test_lines_of_one_subject_are_not_cut_by_their_noise(seed: int) -> None:
    assert cut(*lines(7.5, seed=seed), ended=True) == [7.5 * MINUTE]


@pytest.mark.parametrize("seed", range(5))
def test_few_lines_are_not_cut_by_their_noise(seed: int) -> None:
    starts, window = [0, 4 * MINUTE, 7 * MINUTE], TimeSpan.of(0, 7 * MINUTE + MINUTE // 2)
    same = lines(3 * LINE / MINUTE, seed=seed, noise=0.5)[1]
    other = lines(LINE / MINUTE, 2 * LINE / MINUTE, seed=seed, noise=0.5)[1]
    assert episode_ends(window, starts, same, LENGTHS, ended=True) == [window.end_ms]
    ends = episode_ends(window, starts, other, LENGTHS, ended=True)
    assert ends == [4 * MINUTE, window.end_ms]


def test_a_crowded_window_takes_bounded_memory() -> None:
    starts, vectors = lines(4, 4)
    many = np.repeat(vectors, 50, axis=0)
    at = [start + place * LINE // 50 for start in starts for place in range(50)]
    tracemalloc.start()
    ends = cut_at(at, many)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.allclose(ends[0], 4 * MINUTE, atol=LINE)
    assert most < 100_000_000


def test_what_is_longer_than_an_episode_is_split() -> None:
    ends = cut(*lines(9.5), ended=True)
    assert len(ends) == 2
    assert ends[0] >= LENGTHS.least


def test_a_change_too_close_to_the_end_of_the_window_waits_for_what_follows() -> None:
    starts, vectors = lines(4, 5.5, 0.5)
    assert np.allclose(cut(starts, vectors), [4 * MINUTE], atol=LINE)


def test_lines_that_begin_together_stay_together() -> None:
    starts, vectors = lines(4, 4)
    together = [start // (30 * 1000) * 30 * 1000 for start in starts]
    assert cut(together, vectors, ended=True)[0] == 4 * MINUTE
    assert set(cut(together, vectors)) <= set(together)


def test_a_window_without_a_gap_is_one_episode() -> None:
    assert cut([0] * 96, lines(8)[1]) == [8 * MINUTE]
    assert episode_ends(TimeSpan.of(0, 10), [], np.zeros((0, 4)), LENGTHS, ended=True) == [10]


@given(
    st.lists(st.floats(0.1, 6), min_size=1, max_size=5),
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 2.0]),
)
def test_ends_are_a_partition(minutes: list[float], seed: int, ended: bool, noise: float) -> None:
    starts, vectors = lines(*minutes, seed=seed, noise=noise)
    end = len(starts) * LINE
    ends = cut(starts, vectors, ended=ended)
    assert ends == sorted(set(ends))
    assert 0 < ends[-1] <= end
    parts = np.diff([0, *ends])
    if len(ends) > 1:
        assert min(parts) >= LENGTHS.least
        assert max(parts) <= LENGTHS.most
    if ended or ends == [end]:
        assert ends[-1] == end
    else:
        assert end - ends[-1] >= CONTEXT_MS
