"""Measuring beside decoding: the same frames as one after the other, and never far behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import av
import numpy as np
import pytest

from domain.settings import WatchSettings
from perception.frames import AS_STORED, Frame, shrink
from perception.quality import FrameMeasurer, QualityMeter

SETTINGS = WatchSettings(frame_height=60)


@pytest.fixture
def measurer() -> Iterator[FrameMeasurer]:
    made = FrameMeasurer(AS_STORED, SETTINGS)
    yield made
    made.close()


def pictures(count: int) -> list[av.VideoFrame]:
    random = np.random.default_rng(3)
    images = random.integers(0, 256, (count, 120, 160, 3), np.uint8)
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


def test_each_clip_is_measured_by_itself(measurer: FrameMeasurer) -> None:
    for _ in range(2):
        for index, picture in enumerate(pictures(3)):
            measurer.add(picture, index * 200)
        changes = [frame.metrics.change for frame in measurer.collect()]
        assert changes[0] == 0.0
        assert min(changes[1:]) > 10
    assert measurer.collect() == []


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


def test_an_error_reaches_the_caller(
    measurer: FrameMeasurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: object, _picture: object) -> None:
        raise ValueError("bad picture")

    monkeypatch.setattr(QualityMeter, "measure", broken)
    measurer.add(pictures(1)[0], 0)
    with pytest.raises(ValueError, match="bad picture"):
        measurer.collect()
