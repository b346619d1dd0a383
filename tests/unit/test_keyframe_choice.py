from __future__ import annotations

import hashlib

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.settings import WatchSettings
from perception.frames import Frame, FrameMetrics
from perception.jpeg import Blobs
from perception.keyframes import (
    Candidate,
    ShotPosition,
    choose_keyframes,
    keyframe_candidates,
    pick_keyframes,
    shot_positions,
)
from tests.support.signals import decoded

GAP = 2_000


@st.composite
def clips(draw: st.DrawFn) -> list[Candidate]:
    """Frames 200 ms apart, with cuts and qualities (ties are likely)."""
    count = draw(st.integers(0, 60))
    cuts = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    marks = draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    shots = np.cumsum(cuts).tolist()
    places = shot_positions([i * 200 for i in range(count)], shots, 200)
    rows = zip(shots, marks, places, strict=True)
    return [Candidate(i * 200, shot, float(mark), at) for i, (shot, mark, at) in enumerate(rows)]


def best(found: list[Candidate], among: list[int]) -> int:
    return max(among, key=lambda i: (-found[i].position, found[i].quality, -i))


def written_out(found: list[Candidate], count: int) -> list[int]:
    """The selection of section 3.1, step by step, with frames beside cuts after all others."""
    shots = sorted({c.shot for c in found})
    firsts = [best(found, [i for i, c in enumerate(found) if c.shot == shot]) for shot in shots]
    passing = [i for i in firsts if found[i].position == ShotPosition.SHORT_SHOT]
    firsts = [i for i in firsts if i not in passing]
    clear = [i for i, c in enumerate(found) if c.position == ShotPosition.CLEAR]
    chosen: list[int] = []
    while firsts and len(chosen) < count:
        chosen.append(best(found, firsts))
        firsts.remove(chosen[-1])
    while len(chosen) < count:
        far = [
            i
            for i in (*clear, *passing)
            if all(abs(found[i].time_ms - found[j].time_ms) >= GAP for j in chosen)
        ]
        if not far:
            break
        chosen.append(best(found, far))
    return sorted(chosen)


@given(clips(), st.integers(1, 5))
def test_the_choice_is_the_papers(found: list[Candidate], count: int) -> None:
    assert choose_keyframes(found, count, GAP) == written_out(found, count)


def placed(*lengths: int) -> str:
    """Where the frames of shots of so many samples each lie: clear, beside a cut, passing."""
    shots = [shot for shot, length in enumerate(lengths) for _ in range(length)]
    found = shot_positions([i * 200 for i in range(len(shots))], shots, 200)
    return "".join("cbp"[place] for place in found)


def test_a_flash_and_the_steps_of_a_cross_fade_are_passing() -> None:
    assert placed(5, 1, 5) == "cccbb" + "p" + "bbccc"
    assert placed(5, 2, 1, 1, 5) == "cccbb" + "pppp" + "bbccc"
    assert placed(5, 3, 5) == "cccbb" + "bbb" + "bbccc"


def test_a_picture_that_stands_still_is_no_flash() -> None:
    """It comes once, and lasts until the next one."""
    assert shot_positions([0, 200, 5_200], [0, 1, 2], 200, 9_000) == [
        ShotPosition.SHORT_SHOT,
        ShotPosition.NEAR_CUT,
        ShotPosition.NEAR_CUT,
    ]
    assert shot_positions([0], [0], 200, 9_000) == [ShotPosition.CLEAR]
    assert shot_positions([], [], 200) == []


def test_a_flash_does_not_take_the_place_of_a_second_frame_of_a_long_shot() -> None:
    shots = [*[0] * 60, 1, *[2] * 10]
    at = shot_positions([i * 200 for i in range(71)], shots, 200)
    found = [
        Candidate(i * 200, shot, 99.0 if shot == 1 else 71.0 - i, at[i])
        for i, shot in enumerate(shots)
    ]
    assert choose_keyframes(found, 3, GAP) == [0, 10, 63]


def frame(ms: int, grey: int, change: float = 0.0, sharp: float = 1.0) -> Frame:
    rgb = np.full((48, 64, 3), grey, np.uint8)
    return Frame(
        ms, FrameMetrics(change, sharp, 1.0), av.VideoFrame.from_ndarray(rgb, format="rgb24")
    )


def test_keyframes_carry_their_numbers_and_their_jpegs() -> None:
    frames = [frame(0, 40), frame(1_000, 90, 50.0, 4.0), frame(2_000, 200, 80.0, 2.0)]
    settings, blobs = WatchSettings(), Blobs()
    chosen = pick_keyframes(frames, keyframe_candidates(frames, settings, 3_000), settings, blobs)
    assert [one.index for one in chosen] == [0, 1, 2]
    assert [one.keyframe.shot for one in chosen] == [0, 1, 2]
    assert chosen[1].keyframe.quality == pytest.approx(4.0 * 1.3)
    for one in chosen:
        key = one.keyframe
        assert hashlib.sha256(blobs[key.blob]).hexdigest() == key.blob
        pixels = decoded(blobs[key.blob])
        assert pixels.shape == (key.height, key.width, 3) == one.image.shape
        assert abs(int(pixels.mean()) - int(one.image.mean())) <= 2
