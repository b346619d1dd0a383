"""VAM's gates, moments, events and age tiers: what stays, strictly in order of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from skimage.color import rgb2gray
from skimage.filters import laplace, threshold_otsu
from skimage.metrics import structural_similarity

from models.ports import Image, Vector
from perception.images import LIKENESS
from strategies.vam.moments import (
    EventBounds,
    EventStart,
    EventState,
    Gate,
    Gates,
    Moments,
    MomentState,
    MomentStep,
    decode_plane,
    distance,
    encode_plane,
    frame_vectors,
    grey_plane,
    histogram_change,
    otsu,
    remembered,
    similarity,
    threshold,
    unchanged,
)
from strategies.vam.settings import HOUR, MINUTE, SECOND, AgeTier, VisualMemorySettings
from strategies.vam.visual_memory import (
    FrameReason,
    Thinning,
    ThinningState,
    VisualChange,
    VisualMemory,
)
from tests.support.real_frames import frames_of

SETTINGS = VisualMemorySettings()
SPACED = st.lists(st.integers(1, 300), min_size=1, max_size=200)
SharedMedia = Callable[[str], Path]
CLIPS = ("tos_battle_clip.webm", "visualvoice_interview.mp4", "wannaworktogether.mp4")


def at(change: float, of: float = 0.0) -> Vector:
    """A unit vector whose distance is ``change`` to that of 0, turned on by ``of`` radians."""
    angle = of + math.acos(1 - change)
    return np.array([math.cos(angle), math.sin(angle)], np.float32)


def steps(vectors: Sequence[Vector], **changes: object) -> list[MomentStep]:
    moments = Moments(SETTINGS.model_copy(update=changes), LIKENESS)
    return [moments.add(2 * SECOND * index, vector) for index, vector in enumerate(vectors)]


def test_frames_that_look_alike_are_one_moment_whose_end_waits() -> None:
    found = steps([at(0), at(0.119), at(0.05), at(0.121)])
    assert [step.starts for step in found] == [True, False, False, True]
    assert [step.replaced_ms for step in found] == [None, None, 2_000, None]
    assert found[3].change == pytest.approx(0.121, abs=1e-6)


def test_otsu_takes_over_once_there_are_enough_distances() -> None:
    # Distances of 0.02 and 0.1 are all under the fixed threshold; Otsu tells them apart.
    vectors = [at(0)] + [at(0.02), at(0.1)] * 15 + [at(0.1)]
    assert not any(step.starts for step in steps(vectors)[1:31])
    assert steps(vectors)[31].starts
    assert not steps(vectors, least_distances=100)[31].starts


def test_vectors_of_another_model_start_a_moment_and_are_not_compared() -> None:
    moments = Moments(SETTINGS, LIKENESS)
    moments.add(0, at(0))
    moments.add(2_000, at(0.05))
    other = Moments(SETTINGS, "clip:other", moments.state)
    assert other.add(4_000, np.ones(5, np.float32)).starts
    assert other.state.recent == ()


def bounds(changes: Iterable[float], every_ms: int = 10 * SECOND, **other: object) -> list[int]:
    """Start events where moments begin every so often; return their times."""
    events = EventBounds(SETTINGS.model_copy(update=other))
    found: list[EventStart] = []
    for index, change in enumerate(changes):
        found += events.pass_time(index * every_ms)
        found += events.add_moment(index * every_ms, change)
    return [start.start_ms for start in found]


def test_events_begin_at_local_peaks_above_the_threshold() -> None:
    assert bounds([0, 0.3, 0.5, 0.25, 0.15, 0.19, 0.13, 0.4, 0.4, 0.1]) == [0, 20_000, 70_000]


def test_the_threshold_of_events_is_a_relaxed_otsu() -> None:
    low_and_high = [0.0] + [0.15, 0.18] * 20
    assert bounds(low_and_high, every_ms=SECOND, least_distances=100) == [0]
    adaptive = bounds(low_and_high, every_ms=SECOND, least_distances=10)
    assert adaptive[1:] == [index * SECOND for index in range(12, 40, 2)]


def test_an_event_is_never_longer_than_five_minutes() -> None:
    events = EventBounds(SETTINGS)
    events.add_moment(0, 0)
    found = [start for time in range(0, 1_000 * SECOND, 2_000) for start in events.pass_time(time)]
    assert found == [EventStart(300_000 * n, 0) for n in (1, 2, 3)]


def test_a_peak_in_waiting_begins_an_event_when_time_is_up() -> None:
    events = EventBounds(SETTINGS)
    events.add_moment(0, 0)
    events.add_moment(100_000, 0.5)
    assert events.pass_time(299_999) == []
    assert events.pass_time(400_000) == [EventStart(100_000, 100_000), EventStart(400_000, 100_000)]


@example([(100, 0.0), (400, 0.0), (400, 0.0), (300, 1.0)])
@given(st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1)), min_size=1, max_size=60))
def test_events_are_bounded_and_in_order(moments: list[tuple[int, float]]) -> None:
    events, found, time = EventBounds(SETTINGS), list[EventStart](), 0
    for step, change in moments:
        found += events.add_moment(time, change)
        time += step * SECOND
        found += events.pass_time(time)
    starts = [start.start_ms for start in found]
    assert starts == sorted(set(starts))
    assert all(after - before <= SETTINGS.event_ms for before, after in pairwise(starts))
    assert all(start.frame_ms <= start.start_ms for start in found)
    assert time - starts[-1] < SETTINGS.event_ms


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_moments_and_events_go_on_the_same_from_their_states(changes: list[float]) -> None:
    few = SETTINGS.model_copy(update={"least_distances": 5, "recent_distances": 9})
    moments, events = Moments(few, LIKENESS), EventBounds(few)
    state, bound = moments.state, events.state
    for index, change in enumerate(changes):
        state = MomentState.model_validate_json(state.model_dump_json())
        bound = EventState.model_validate_json(bound.model_dump_json())
        resumed, again = Moments(few, LIKENESS, state), EventBounds(few, bound)
        time, vector = index * 20_000, at(change, index * 0.1)
        assert resumed.add(time, vector) == moments.add(time, vector)
        assert again.pass_time(time) == events.pass_time(time)
        assert again.add_moment(time, change) == events.add_moment(time, change)
        state, bound = resumed.state, again.state


def by_the_rule(times: Sequence[int], staying: set[int], now: int) -> dict[int, int]:
    """The frames that stay by the tiers' rule applied at once to all, with their tier."""
    kept, seen = {}, set()
    for time in times:
        tier = SETTINGS.tier_of(max(0, now - time)) if time != times[-1] else 0
        interval = (tier, time // SETTINGS.tiers[tier - 1].every_ms) if tier else None
        if time in staying or interval is None or interval not in seen:
            kept[time] = tier
        seen.add(interval)
    return kept


@given(SPACED, st.sets(st.integers(0, 199)), st.integers(1, 400))
def test_thinning_by_steps_leaves_the_same(gaps: list[int], stays: set[int], stride_s: int) -> None:
    # Ages 60 times as short, intervals too: what takes a day takes minutes.
    times = [sum(gaps[:index]) * 20 * SECOND for index in range(len(gaps))]
    staying = {times[index] for index in stays if index < len(times)}
    thinning, kept, now = Thinning(SETTINGS), dict[int, int](), 0
    for time in times:
        while now + stride_s * MINUTE < time:
            now += stride_s * MINUTE
            apply(thinning, kept, now)
        thinning.add(time)
        kept[time] = 0
        if time in staying:
            thinning.protect(time)
    for more in range(30):
        now = max(now, times[-1]) + more * HOUR
        apply(thinning, kept, now)
    assert kept == by_the_rule(times, staying, now)


def apply(thinning: Thinning, kept: dict[int, int], now: int) -> None:
    thinned = thinning.thin(now)
    for time in thinned.dropped:
        del kept[time]
    for time, tier in thinned.moved.items():
        assert kept[time] < tier
        kept[time] = tier


def test_tiers_begin_at_an_hour_and_a_day_and_first_and_last_stay() -> None:
    thinning = Thinning(SETTINGS)
    for time in range(0, 40 * SECOND, 5 * SECOND):
        thinning.add(time)
    thinning.protect(0)
    assert not thinning.protect(0)
    assert not thinning.protect(1)
    assert thinning.thin(HOUR - 1).moved == {}
    hour = thinning.thin(HOUR + 20 * SECOND)
    assert (hour.moved, hour.dropped) == ({0: 1, 20_000: 1}, [5_000, 10_000, 15_000])
    day = thinning.thin(24 * HOUR + 40 * SECOND)
    assert (day.moved, day.dropped) == ({0: 2}, [25_000, 30_000, 20_000])
    assert thinning.thin(240 * HOUR).dropped == []


def test_thinning_goes_on_from_its_state_and_stays_small() -> None:
    thinning, resumed, largest = Thinning(SETTINGS), Thinning(SETTINGS), 0
    for time in range(0, 27 * HOUR, 20 * SECOND):
        for one in (thinning, resumed):
            one.add(time)
            if time % (5 * MINUTE) == 0:
                one.protect(time)
        if time % (3 * MINUTE) == 0:
            saved = resumed.state.model_dump_json()
            resumed = Thinning(SETTINGS, ThinningState.model_validate_json(saved))
            assert thinning.thin(time) == resumed.thin(time)
            largest = max(largest, len(saved))
    assert largest < 60_000


def test_what_stays_does_not_depend_on_where_clips_end(shared_media: Callable[[str], Path]) -> None:
    vectors, kept = frame_vectors(None), []
    for clip_frames in (1, 7, 1_000):
        memory, rows = VisualMemory(SETTINGS, vectors), dict[int, FrameReason]()
        names = ("tos_battle_clip.webm", "wannaworktogether.mp4", "visualvoice_interview.mp4")
        images = [image for name in names for image in frames_of(shared_media(name), 0.5, 50)[::2]]
        for index, image in enumerate(images * 3, 1):
            time = 2 * SECOND * (index - 1)
            memory.add(time, image)
            if index % clip_frames == 0:
                store(rows, memory.end_clip(time + 2 * SECOND))
        store(rows, memory.end_clip(time))
        kept.append(rows)
    assert kept[0] == kept[1] == kept[2]
    assert kept[0][0] is FrameReason.EVENT
    assert 10 < len(kept[0]) < 150


def store(rows: dict[int, FrameReason], change: VisualChange) -> None:
    for time in change.dropped:
        del rows[time]
    rows |= {time: frame.reason for time, frame in change.added.items()}
    assert change.reasons.keys() <= rows.keys()
    rows |= change.reasons


def frames(media: SharedMedia) -> list[tuple[Image, ...]]:
    return [frames_of(media(name), 0.5, 50) for name in CLIPS]


def greys(media: SharedMedia) -> list[list[Image]]:
    return [
        [np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8) for image in clip]
        for clip in frames(media)
    ]


def test_the_numbers_are_the_papers() -> None:
    assert SETTINGS.every_ms == 2_000
    assert (SETTINGS.least_sharpness, SETTINGS.least_change) == (20.0, 20.0)
    assert (SETTINGS.most_similarity, SETTINGS.least_histogram_change) == (0.92, 0.0)
    assert SETTINGS.moment_distance == pytest.approx(0.12)
    assert SETTINGS.event_distance == pytest.approx(0.20)
    assert SETTINGS.event_ms == 300_000
    assert [tier.model_dump() for tier in SETTINGS.tiers] == [
        {"from_age_ms": HOUR, "every_ms": 20_000, "side": 768, "quality": 70},
        {"from_age_ms": 24 * HOUR, "every_ms": 120_000, "side": 512, "quality": 45},
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"unknown": 1},
        {"least_change": float("nan")},
        {"least_distances": 301},
        {"tiers": SETTINGS.tiers[::-1]},
        {
            "tiers": (
                SETTINGS.tiers[0],
                AgeTier(from_age_ms=2 * HOUR, every_ms=30_000, side=9, quality=9),
            )
        },
    ],
)
def test_numbers_that_make_no_sense_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        VisualMemorySettings.model_validate({**SETTINGS.model_dump(), **changed})


def test_the_blur_gate_decides_as_scikit_image_does(shared_media: SharedMedia) -> None:
    counts = [0, 0]
    for clip in frames(shared_media):
        for image in clip:
            for sigma in (0.0, 2.0, 4.0):
                shown = image if not sigma else cv2.GaussianBlur(image, (0, 0), sigma)
                image_now = np.asarray(shown, np.uint8)
                grey = np.rint(rgb2gray(image_now[..., ::-1]) * 255)
                # OpenCV mirrors at the border without repeating the edge.
                variance = float(laplace(np.pad(grey, 1, mode="reflect"))[1:-1, 1:-1].var())
                if abs(variance - SETTINGS.least_sharpness) < 1.0:
                    continue
                dropped = Gates(SETTINGS).stopped_by(image_now) is Gate.BLUR
                assert dropped == (variance < SETTINGS.least_sharpness)
                counts[dropped] += 1
    assert min(counts) >= 20


def test_change_and_structure_decide_as_scikit_image_does(shared_media: SharedMedia) -> None:
    settings = SETTINGS.model_copy(update={"least_change": 2.0, "most_similarity": 0.8})
    seen: set[Gate | None] = set()
    for clip in greys(shared_media):
        for before, now in pairwise(clip):
            change = np.abs(before.astype(int) - now.astype(int)).mean()
            alike, gate = structural_similarity(before, now), None
            if change < settings.least_change:
                gate = Gate.CHANGE
            elif alike >= settings.most_similarity:
                gate = Gate.STRUCTURE
            assert unchanged(before, now, settings) is gate
            seen.add(gate)
    assert seen == {None, Gate.CHANGE, Gate.STRUCTURE}


def test_the_cascade_keeps_the_frames_that_a_plain_one_keeps(shared_media: SharedMedia) -> None:
    for clip in frames(shared_media):
        gates, last = Gates(SETTINGS), None
        for image in clip:
            grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
            now = grey_plane(grey, SETTINGS.plane_side)
            keeps = cv2.Laplacian(grey, cv2.CV_64F).var() >= 20.0 and (
                last is None
                or (cv2.absdiff(last, now).mean() >= 20.0 and similarity(last, now) < 0.92)
            )
            assert (gates.stopped_by(image) is None) == keeps
            last = now if keeps else last


def test_the_histogram_gate_is_off_until_it_is_set(shared_media: SharedMedia) -> None:
    clip = greys(shared_media)[0]
    still = SETTINGS.model_copy(update={"least_change": 0.0, "most_similarity": 1.0})
    waves = np.tile([9, -9], clip[0].size // 2).reshape(clip[0].shape)
    noisy = np.clip(clip[0] + waves, 0, 255).astype(np.uint8)
    assert unchanged(clip[0], noisy, still) is None
    on = still.model_copy(update={"least_histogram_change": 0.9})
    assert unchanged(clip[0], noisy, on) is Gate.HISTOGRAM
    assert histogram_change(clip[0], clip[0]) == pytest.approx(0.0, abs=1e-9)


def test_a_plane_of_another_size_is_a_change_and_text_keeps_it_as_it_was() -> None:
    wide = np.random.default_rng(3).integers(0, 255, (90, 160), dtype=np.uint8)
    assert unchanged(wide, wide.T.copy(), SETTINGS) is None
    plane = decode_plane(encode_plane(wide))
    assert plane is not None
    assert np.array_equal(plane, wide)
    assert decode_plane("AAAA") is None, "an import may bring anything"


@pytest.mark.parametrize("shape", [(1, 1), (3, 4000), (720, 1280), (200, 5)])
def test_pictures_of_any_shape_pass_through_the_gates(shape: tuple[int, int]) -> None:
    draw, gates = np.random.default_rng(1), Gates(SETTINGS)
    for _ in range(3):
        gates.stopped_by(draw.integers(0, 255, (*shape, 3), dtype=np.uint8))


def test_otsu_divides_distances_as_opencv_and_scikit_image_do(shared_media: SharedMedia) -> None:
    vectors = frame_vectors(None)
    assert vectors.name == LIKENESS
    for clip in frames(shared_media):
        shown = [vectors.vector(image) for image in clip]
        distances = np.array([distance(a, b) for a, b in zip(shown, shown[3:], strict=False)])
        ours = distances > otsu(distances)
        assert np.array_equal(ours, distances > threshold_otsu(distances))
        low, high = distances.min(), distances.max()
        # The same 256 bins for OpenCV, whose threshold is the last bin of the lower class.
        bins = np.minimum((distances - low) / (high - low) * 256, 255).astype(np.uint8)
        level, _ = cv2.threshold(bins, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
        differ = ours != (bins > level)
        # Ours is the middle of that bin: only what lies in it may go either way.
        assert np.all(bins[differ] == level)
        assert 0 < ours.sum() < len(ours)


def test_the_threshold_is_fixed_until_there_are_enough_distances() -> None:
    few = SETTINGS.model_copy(update={"least_distances": 4, "recent_distances": 6})
    assert threshold([0.1, 0.1, 0.9], 0.12, few, 0.5) == 0.12
    assert 0.05 <= threshold([0.1, 0.1, 0.9, 0.9], 0.12, few, 0.5) < 0.45
    assert threshold([0.3] * 6, 0.12, few, 0.5) == pytest.approx(0.15)
    assert remembered((0.1,) * 6, 0.3, few) == (*(0.1,) * 5, 0.3)
