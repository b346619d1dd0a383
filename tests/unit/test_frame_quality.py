"""Frames are sampled, and measured by eq. 1 and eq. 2, beside decoding."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import av
import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from domain.settings import WatchSettings
from perception.frames import AS_STORED, Frame, FrameMetrics, SampleGrid, Upright, shrink
from perception.quality import (
    FrameMeasurer,
    QualityMeter,
    grey_change,
    hue_entropy,
    number_shots,
    quality,
    sharpness,
)
from tests.support.full_suite import examples

pairs = st.tuples(st.integers(3, 16), st.integers(3, 16)).flatmap(
    lambda shape: st.tuples(arrays(np.uint8, shape), arrays(np.uint8, shape))
)
images = st.tuples(st.integers(1, 8), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.uint8, (*shape, 3))
)
SETTINGS = WatchSettings(frame_height=60)
grids = st.builds(
    SampleGrid,
    clip_ms=st.integers(200, 60_000),
    fps=st.floats(0.2, 60, allow_nan=False).map(lambda fps: round(fps, 2)),
)
moments = st.integers(0, 10**7)


def laplacian(grey: NDArray[np.uint8]) -> NDArray[np.int64]:
    """4-neighbour Laplacian; borders mirrored without repeating the edge."""
    wide = np.pad(grey.astype(np.int64), 1, mode="reflect")
    inner = wide[1:-1, 1:-1]
    return wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * inner


@given(arrays(np.uint8, st.tuples(st.integers(3, 24), st.integers(3, 24))))
def test_sharpness_is_the_variance_of_the_laplacian(grey: NDArray[np.uint8]) -> None:
    assert sharpness(grey) == pytest.approx(laplacian(grey).var(), rel=1e-9, abs=1e-6)


@given(pairs)
def test_change_is_the_mean_absolute_difference(pair: tuple[NDArray[np.uint8], ...]) -> None:
    a, b = pair
    expected = np.abs(a.astype(int) - b.astype(int)).mean()
    assert grey_change(a, b) == pytest.approx(expected)
    assert grey_change(a, b) == grey_change(b, a) <= 255
    assert grey_change(a, a) == 0


@given(images)
@settings(max_examples=examples(15, 50))
def test_entropy_is_that_of_the_hue_histogram(bgr: NDArray[np.uint8]) -> None:
    hues = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)[..., 0].ravel()
    counts = np.bincount(hues.astype(int) * 32 // 180, minlength=32)
    shares = counts[counts > 0] / counts.sum()
    expected = -(shares * np.log2(shares)).sum()
    assert hue_entropy(bgr, 32) == pytest.approx(expected, abs=1e-5)
    assert 0 <= hue_entropy(bgr, 32) <= 5 + 1e-6


def test_quality_is_equation_two() -> None:
    assert quality(FrameMetrics(change=9, sharpness=100, entropy=2), 0.3) == pytest.approx(160)
    assert quality(FrameMetrics(change=9, sharpness=100, entropy=0), 0.3) == 100


def coloured(height: int = 240, width: int = 320) -> NDArray[np.uint8]:
    """Smooth patches in many colours, with edges between them."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], -1)
    smooth = cv2.GaussianBlur(rgb.astype(np.uint8), (9, 9), 3)
    return np.where(((x // 16 + y // 16) % 2 == 0)[..., None], smooth // 2, smooth).astype(np.uint8)


@pytest.mark.parametrize(
    "name",
    ["yuv420p", "yuv444p", "yuv422p", "nv12", "yuvj420p", "yuv420p10le", "rgb24", "gbrp", "rgba"],
)
def test_marks_do_not_depend_on_how_pixels_are_stored(name: str) -> None:
    rgb = coloured()
    picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=name)
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.uint8)
    marks = QualityMeter(WatchSettings()).measure(picture)
    assert marks.sharpness == pytest.approx(laplacian(grey).var(), rel=0.05)
    truth = hue_entropy(np.ascontiguousarray(rgb[..., ::-1]), 32)
    assert marks.entropy == pytest.approx(truth, abs=0.15)


@pytest.mark.parametrize(
    "size", [(1_920, 1_080), (1_281, 721), (641, 361), (64, 48), (2, 2), (1, 1), (1, 90)]
)
def test_pictures_of_any_size_are_measured_like_the_whole_picture(size: tuple[int, int]) -> None:
    width, height = size
    rgb = coloured(height, width) if min(size) > 16 else np.zeros((height, width, 3), np.uint8)
    picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
    whole = picture.to_ndarray(format="bgr24").astype(np.uint8)
    marks = QualityMeter(WatchSettings()).measure(picture)
    grey = cv2.cvtColor(whole, cv2.COLOR_BGR2GRAY).astype(np.uint8)
    assert marks.sharpness == pytest.approx(sharpness(grey), rel=0.03, abs=1e-9)
    assert marks.entropy == pytest.approx(hue_entropy(whole, 32), abs=0.03)


def test_a_change_near_the_threshold_is_that_of_whole_pictures() -> None:
    one, other = (
        np.random.default_rng(seed).integers(0, 256, (360, 640, 3), np.uint8) for seed in (1, 2)
    )
    greys = [cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.uint8) for rgb in (one, other)]
    exact = grey_change(*greys)
    shown = [av.VideoFrame.from_ndarray(rgb, format="rgb24") for rgb in (one, other)]
    assert changes(shown, 10.0)[1] != pytest.approx(exact, abs=1e-9)
    for threshold in (exact - 0.01, exact + 0.01):
        assert changes(shown, threshold)[1] == pytest.approx(exact, abs=1e-9)


def changes(shown: list[av.VideoFrame], threshold: float) -> list[float]:
    meter = QualityMeter(WatchSettings(shot_threshold=threshold))
    return [meter.measure(picture).change for picture in shown]


def test_pictures_of_another_size_are_a_cut() -> None:
    small, large = (av.VideoFrame.from_ndarray(coloured(h, w)) for h, w in ((180, 320), (360, 640)))
    assert changes([small, large], 30.0)[1] == 255


@given(st.lists(st.floats(0, 255), max_size=60), st.floats(0.1, 254))
def test_shots_count_up_above_the_threshold(changes: list[float], threshold: float) -> None:
    shots = number_shots(changes, threshold)
    assert (len(shots), shots[:1]) == (len(changes), [0][: len(changes)])
    for i in range(1, len(changes)):
        assert shots[i] - shots[i - 1] == int(changes[i] > threshold)


def test_a_change_of_exactly_the_threshold_is_no_cut() -> None:
    assert number_shots([255, 30.0, 30.1], 30.0) == [0, 0, 1]


@pytest.mark.parametrize(
    ("size", "quarters", "expected"),
    [
        ((640, 360), 0, (360, 640)),
        ((1_920, 1_080), 0, (720, 1_280)),
        ((1_920, 1_080), 1, (720, 405)),
        ((720, 1_280), 0, (720, 405)),
        ((1_280, 720), 3, (720, 405)),
    ],
)
def test_pictures_are_at_most_so_high_and_upright(
    size: tuple[int, int], quarters: int, expected: tuple[int, int]
) -> None:
    picture, upright = av.VideoFrame(*size, "yuv420p"), Upright(quarters=quarters)
    frame = Frame(0, FrameMetrics(0, 0, 0), shrink(picture, upright, 720), upright)
    assert frame.image.shape == (*expected, 3)
    assert frame.image.flags["C_CONTIGUOUS"]


@pytest.fixture
def measurer() -> Iterator[FrameMeasurer]:
    made = FrameMeasurer(AS_STORED, SETTINGS)
    yield made
    made.close()


def pictures(count: int) -> list[av.VideoFrame]:
    images = np.random.default_rng(3).integers(0, 256, (count, 120, 160, 3), np.uint8)
    rgb = [av.VideoFrame.from_ndarray(image, format="rgb24") for image in images]
    return [picture.reformat(format="yuv420p") for picture in rgb]


def content(frames: list[Frame]) -> list[tuple[object, ...]]:
    return [(f.time_ms, f.metrics, f.image.tobytes()) for f in frames]


def test_frames_are_what_measuring_one_after_the_other_gives(measurer: FrameMeasurer) -> None:
    shown, meter = pictures(30), QualityMeter(SETTINGS)
    for index, picture in enumerate(shown):
        measurer.add(picture, index * 200)
    expected = [
        Frame(index * 200, meter.measure(picture), shrink(picture, AS_STORED, 60))
        for index, picture in enumerate(shown)
    ]
    assert content(measurer.collect()) == content(expected)


def test_the_caller_waits_where_many_pictures_are_not_measured_yet(
    measurer: FrameMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, measured = threading.Event(), QualityMeter.measure

    def held(self: QualityMeter, picture: av.VideoFrame) -> object:
        go.wait(10)
        return measured(self, picture)

    monkeypatch.setattr(QualityMeter, "measure", held)
    taken: list[int] = []
    caller = threading.Thread(target=take_all, args=(measurer, pictures(40), taken))
    caller.start()
    caller.join(0.3)
    assert len(taken) < 12
    go.set()
    caller.join(10)
    assert len(measurer.collect()) == len(taken) == 40


def take_all(measurer: FrameMeasurer, shown: list[av.VideoFrame], taken: list[int]) -> None:
    for index, picture in enumerate(shown):
        measurer.add(picture, index)
        taken.append(index)


def test_error_reaches_the_caller(measurer: FrameMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: object, _picture: object) -> None:
        raise ValueError("bad picture")

    monkeypatch.setattr(QualityMeter, "measure", broken)
    measurer.add(pictures(1)[0], 0)
    with pytest.raises(ValueError, match="bad picture"):
        measurer.collect()


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


@given(grids, st.integers(0, 50), st.integers(0, 50))
def test_every_clip_is_sampled_alike(grid: SampleGrid, one: int, other: int) -> None:
    def local(clip: int) -> list[int]:
        start = clip * grid.clip_ms
        return [t - start for t in grid.within(start, start + grid.clip_ms)]

    assert local(one) == local(other)
    assert local(one)[0] == 0


@given(grids, moments, st.integers(0, 5_000), st.integers(0, 5_000))
def test_stretches_share_no_instant(grid: SampleGrid, start: int, first: int, second: int) -> None:
    middle, end = start + first, start + first + second
    assert [*grid.within(start, middle), *grid.within(middle, end)] == list(grid.within(start, end))
