from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.settings import WatchSettings
from perception.frames import SampleGrid

grids = st.builds(
    SampleGrid,
    clip_ms=st.integers(200, 60_000),
    fps=st.floats(0.2, 60, allow_nan=False).map(lambda fps: round(fps, 2)),
)
moments = st.integers(0, 10**7)


def test_the_papers_grid_is_five_a_second() -> None:
    grid = SampleGrid.of(WatchSettings())
    assert list(grid.within(29_700, 30_500)) == [29_800, 30_000, 30_200, 30_400]
    assert len(list(grid.within(0, 30_000))) == 150


@given(grids, moments)
def test_the_next_instant_is_not_before_and_none_lies_between(grid: SampleGrid, ms: int) -> None:
    instant = grid.at_or_after(ms)
    assert ms <= instant <= ms + 1000 / grid.fps + 1
    assert grid.at_or_after(instant) == instant
    if instant > ms:
        assert grid.at_or_after(instant - 1) == instant


@given(grids, st.integers(0, 500))
def test_every_clip_begins_with_an_instant(grid: SampleGrid, clip: int) -> None:
    assert grid.at_or_after(clip * grid.clip_ms) == clip * grid.clip_ms


@given(grids, st.integers(0, 50), st.integers(0, 50))
def test_every_clip_is_sampled_alike(grid: SampleGrid, one: int, other: int) -> None:
    def local(clip: int) -> list[int]:
        start = clip * grid.clip_ms
        return [t - start for t in grid.within(start, start + grid.clip_ms)]

    assert local(one) == local(other)
    assert local(one)[0] == 0


@given(grids, moments, st.integers(0, 5_000), st.integers(0, 5_000))
def test_stretches_side_by_side_share_no_instant_and_miss_none(
    grid: SampleGrid, start: int, first: int, second: int
) -> None:
    middle, end = start + first, start + first + second
    parts = [*grid.within(start, middle), *grid.within(middle, end)]
    assert parts == list(grid.within(start, end))


def test_nothing_is_sampled_before_the_video() -> None:
    assert list(SampleGrid.of(WatchSettings()).within(-500, 300)) == [0, 200]
