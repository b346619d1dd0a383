"""VAM's gates and thresholds decide as OpenCV and scikit-image do on real frames."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from pydantic import ValidationError
from skimage.color import rgb2gray
from skimage.filters import laplace, threshold_otsu
from skimage.metrics import structural_similarity

from models.ports import Image
from perception.likeness import LIKENESS
from strategies.vam.moments import (
    AdaptiveThreshold,
    Gate,
    Gates,
    decode_plane,
    distance,
    encode_plane,
    frame_vectors,
    grey_plane,
    histogram_change,
    otsu,
    similarity,
    unchanged,
)
from strategies.vam.settings import HOUR, AgeTier, VisualMemorySettings
from tests.support.real_frames import frames_of

SharedMedia = Callable[[str], Path]
SETTINGS = VisualMemorySettings()
CLIPS = ("tos_battle_clip.webm", "visualvoice_interview.mp4", "wannaworktogether.mp4")


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
            alike = structural_similarity(before, now)
            gate = None
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
    threshold = AdaptiveThreshold(0.12, least=4, most=6, factor=0.5)
    for distance_now in (0.1, 0.1, 0.9):
        threshold.add(distance_now)
        assert threshold.value == 0.12
    threshold.add(0.9)
    assert 0.05 <= threshold.value < 0.45
    for _ in range(6):
        threshold.add(0.3)
    assert threshold.value == pytest.approx(0.15)
    assert threshold.recent == (0.3,) * 6
