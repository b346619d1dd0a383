"""Every classifier of sounds keeps the same promises, with its real weights."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from domain.errors import WeightsMissing
from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples, SoundClassifier
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.sounds import KINDS, find_sounds
from store.home import Home
from tests.support.signals import SAMPLE_HZ, noise, samples_of, silence

Shared = Callable[[str], Path]
WEIGHTS = Home.default().weights
SETTINGS = WatchSettings()


@pytest.fixture(scope="module")
def classifier() -> SoundClassifier:
    try:
        found = Toolbox(load_profile("local"), WEIGHTS).sounds
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert found is not None
    return found


def kinds(samples: Samples, classifier: SoundClassifier) -> set[str]:
    clip = Clip(index=0, span=TimeSpan.of(0, len(samples) * 1000 // SAMPLE_HZ))
    return {one.kind for one in find_sounds(samples, classifier, clip, SETTINGS)}


def test_every_class_is_a_kind_or_left_out_once(classifier: SoundClassifier) -> None:
    table = tomllib.loads(KINDS.read_text(encoding="utf-8"))
    placed = [one for part in table.values() for classes in part.values() for one in classes]
    assert sorted(placed) == sorted(classifier.labels)
    assert len(classifier.labels) == 521


@pytest.mark.parametrize("seconds", [0.01, 0.975, 1.0, 3.0, 30.0])
def test_windows_cover_the_samples(classifier: SoundClassifier, seconds: float) -> None:
    scores = classifier.scores(noise(seconds))
    starts = 1 + -(-max(0, round(seconds * SAMPLE_HZ) - classifier.window) // classifier.hop)
    assert scores.shape == (starts, len(classifier.labels))
    assert scores.dtype == np.float32
    assert 0 <= scores.min() <= scores.max() <= 1


def test_the_same_sound_scores_the_same_in_many_threads(classifier: SoundClassifier) -> None:
    tracks = [noise(2.0, seed) for seed in range(6)]
    first = [classifier.scores(track) for track in tracks]
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(classifier.scores, tracks))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_silence_is_no_sound(classifier: SoundClassifier) -> None:
    assert kinds(silence(5.0), classifier) == set()


def test_music_is_heard_and_talk_is_none(classifier: SoundClassifier, shared_media: Shared) -> None:
    assert "music" in kinds(samples_of(shared_media("googlework_short.mp4"), 0, 30), classifier)
    assert kinds(samples_of(shared_media("audio/pyannote_sample.flac")), classifier) == set()


def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        _ = Toolbox(load_profile("local"), WEIGHTS).sounds
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert capfd.readouterr().err == ""


def test_without_weights_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match="homer models pull yamnet"):
        _ = Toolbox(load_profile("local"), tmp_path).sounds


def test_a_profile_may_do_without(tmp_path: Path) -> None:
    profile = load_profile("local").model_copy(update={"sounds": "none"})
    assert Toolbox(profile, tmp_path).sounds is None
    assert "yamnet" not in profile.weights
