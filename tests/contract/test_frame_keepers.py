"""Every keeper of frames passes the same suite, and so does one that drops frames again."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from domain.media import Clip, Video
from domain.time import TimeSpan
from models.ports import Image
from perception.frame_keeper import FrameKeeper, KeptFrames
from strategies.registry import all_strategies
from tests.support.full_suite import examples
from tests.support.reservoir_keeper import RESERVOIR

VIDEO = Video(id="a" * 16, title="talk", path=None, duration_ms=0)
CLIP_MS = 12_000
"""No multiple of the usual lengths, so that what keepers count goes on over clips' ends."""

KEEPERS = {"reservoir": lambda: RESERVOIR} | {
    one.name: one.keeper for one in all_strategies() if one.keeper is not None
}


@pytest.fixture(params=sorted(KEEPERS))
def keeper(request: pytest.FixtureRequest) -> FrameKeeper:
    return KEEPERS[request.param]()


def picture(time_ms: int) -> Image:
    """A picture of a scene of seven seconds, with noise that differs in strength."""
    noise, level = np.random.default_rng(time_ms), 40 + 50 * (time_ms // 7_000 % 4)
    return np.asarray(
        noise.normal(level, 1 + time_ms // 500 % 9, (36, 64, 3)).clip(0, 255), "uint8"
    )


def black(_: int) -> Image:
    return np.zeros((36, 64, 3), np.uint8)


def clip_of(index: int) -> Clip:
    return Clip(index=index, span=TimeSpan.of(index * CLIP_MS, (index + 1) * CLIP_MS))


def times_of(keeper: FrameKeeper, clip: Clip) -> range:
    first = -(-clip.span.start_ms // keeper.every_ms) * keeper.every_ms
    return range(first, clip.span.end_ms, keeper.every_ms)


def shown(keeper: FrameKeeper, clip: Clip, show: Any = picture) -> Iterator[tuple[int, Image]]:
    return ((time, show(time)) for time in times_of(keeper, clip))


def through_the_store(state: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(dict(state), allow_nan=False)))


def plain(made: KeptFrames) -> tuple[Any, ...]:
    changed = sorted(made.changed, key=lambda frame: frame.time_ms)
    return list(made.frames), sorted(made.dropped), through_the_store(made.state), changed


def run(keeper: FrameKeeper, clips: Sequence[Clip]) -> list[tuple[Any, ...]]:
    """Run over clips, beginning anew for each with what the one before left."""
    made, state = [], dict[str, Any]()
    for clip in clips:
        made.append(plain(keeper.keep(VIDEO, state, None, clip, shown(keeper, clip))))
        state = made[-1][2]
    return made


def kept_by(made: Sequence[tuple[Any, ...]]) -> set[int]:
    kept: set[int] = set()
    for frames, dropped, _, changed in made:
        assert set(dropped) <= kept
        kept -= set(dropped)
        assert {frame.time_ms for frame in changed} <= kept
        kept |= {frame.time_ms for frame in frames}
    return kept


def test_equal_frames_are_kept_alike(keeper: FrameKeeper) -> None:
    clips = [clip_of(index) for index in range(12)]
    made = run(keeper, clips)
    assert run(keeper, clips) == made
    assert kept_by(made)


def test_only_frames_that_were_shown_are_kept_each_once(keeper: FrameKeeper) -> None:
    for clip, (frames, _, _, _) in zip(
        map(clip_of, range(12)), run(keeper, [clip_of(i) for i in range(12)]), strict=True
    ):
        times = [frame.time_ms for frame in frames]
        assert set(times) <= set(times_of(keeper, clip))
        assert len(set(times)) == len(times)
        assert all(frame.reason for frame in frames)


def test_clips_that_failed_may_be_missing_in_between(keeper: FrameKeeper) -> None:
    clips = [clip_of(index) for index in (1, 2, 5, 6)]
    assert kept_by(run(keeper, clips)) <= {t for clip in clips for t in times_of(keeper, clip)}


def test_a_clip_without_frames_keeps_none_and_changes_nothing_after(keeper: FrameKeeper) -> None:
    made = keeper.keep(VIDEO, {}, None, clip_of(0), iter(()))
    assert not made.frames
    assert not made.dropped
    assert not made.changed
    state = through_the_store(made.state)
    assert keeper.keep(VIDEO, state, None, clip_of(1), shown(keeper, clip_of(1))).frames


@pytest.mark.parametrize("show", [black, picture], ids=["black", "one"])
def test_black_and_single_frames_are_no_error(keeper: FrameKeeper, show: Any) -> None:
    clip = clip_of(0)
    frames = list(shown(keeper, clip, show))
    for given in (frames, frames[:1]):
        made = keeper.keep(VIDEO, {}, None, clip, iter(given))
        assert {frame.time_ms for frame in made.frames} <= {time for time, _ in given}
        through_the_store(made.state)


def test_memory_is_bounded_however_long_the_video_is(keeper: FrameKeeper) -> None:
    alive: set[int] = set()
    most, state, largest = 0, dict[str, Any](), 0

    def counted(clip: Clip) -> Iterator[tuple[int, Image]]:
        nonlocal most
        for time in times_of(keeper, clip):
            image = picture(time)
            alive.add(time)
            weakref.finalize(image, alive.discard, time)
            most = max(most, len(alive))
            yield time, image

    for index in range(examples(80, 300)):
        clip = clip_of(index)
        state = through_the_store(keeper.keep(VIDEO, state, None, clip, counted(clip)).state)
        largest = max(largest, len(json.dumps(state)))
    assert most <= 40  # frames that a keeper may hold at a time
    assert largest <= 1 << 16  # bytes of the state as JSON
