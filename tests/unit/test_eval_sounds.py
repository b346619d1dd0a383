"""Sounds are put into speech where the report says, and what is recognised is counted as it is."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.perception.sounds import (
    LOUDNESS,
    PlacedSound,
    Recording,
    installed_recordings,
    judge_track,
    make_track,
)
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples
from perception.sounds import sound_kinds

SETTINGS = WatchSettings()
HZ = SETTINGS.audio_hz
TALK = np.full(20 * HZ, 0.01, np.float32)


class Loud:
    """Hears music in every loud window, and a dog in the first two."""

    name = "loud"
    labels = tuple(one for classes in sound_kinds().values() for one in classes)
    window, hop = HZ, HZ // 2

    def scores(self, samples: Samples) -> NDArray[np.float32]:
        starts = range(0, len(samples) - self.window + 1, self.hop)
        found = np.zeros((len(starts), len(self.labels)), np.float32)
        loud = [np.abs(samples[at : at + self.window]).mean() > LOUDNESS / 2 for at in starts]
        found[:, self.labels.index("Music")] = loud
        found[:2, self.labels.index("Dog")] = 1
        return found


def recorded(path: Path, seconds: float) -> Path:
    data = (3_000 * np.sign(np.sin(np.arange(round(seconds * HZ)) / 5))).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(HZ)
        file.writeframes(data.tobytes())
    return path


def test_sounds_stand_between_speech_at_the_times_that_are_reported(tmp_path: Path) -> None:
    long, short = recorded(tmp_path / "a.wav", 20), recorded(tmp_path / "b.wav", 0.5)
    recordings = [Recording(long, ("music",)), Recording(short, ("drums",))]
    track, placed = make_track(recordings, TALK, SETTINGS, beneath=False)
    assert [one.span.start_ms for one in placed] == [6_000, 20_000]
    # The long one is cut, the short one repeated.
    assert [one.span.length_ms for one in placed] == [8_000, 2_400]
    first, second = (track[one.span.start_ms * HZ // 1000 :][: HZ // 2] for one in placed)
    assert np.abs(first).mean() > 0.8 * LOUDNESS
    assert np.abs(second).mean() > 0.8 * LOUDNESS
    assert np.abs(track[: 6 * HZ]).max() < 0.02


def test_what_is_recognised_is_right_only_where_it_is(tmp_path: Path) -> None:
    recordings = [
        Recording(recorded(tmp_path / "a.wav", 5), ("music",)),
        Recording(recorded(tmp_path / "b.wav", 5), ("a train",)),
    ]
    track, placed = make_track(recordings, TALK, SETTINGS, beneath=False)
    report = judge_track("made", track, placed, Loud(), SETTINGS)
    assert (report.placed, report.found) == (2, 1)
    # Music twice, of which one is a train, and a dog that is not there.
    assert (report.told, report.right) == (3, 1)
    assert (report.recall, report.precision) == (0.5, 1 / 3)


def test_a_sound_elsewhere_is_another_sound() -> None:
    placed = PlacedSound(TimeSpan.of(1_000, 2_000), ("music",))
    nothing = judge_track("speech", TALK, (), Loud(), SETTINGS)
    assert (nothing.recall, nothing.told, nothing.precision) == (1.0, 1, 0.0)
    found = judge_track("made", TALK, (placed,), Loud(), SETTINGS)
    assert (found.found, found.right) == (0, 0)


def test_every_listed_recording_has_kinds_that_there_are(tmp_path: Path) -> None:
    assert installed_recordings(tmp_path) == {"scratch": [], "tuxpaint-stamps-default": []}
    (tmp_path / "scratch/Media/Sounds/Animal").mkdir(parents=True)
    cat = tmp_path / "scratch/Media/Sounds/Animal/Cat.mp3"
    cat.touch()
    assert installed_recordings(tmp_path)["scratch"] == [Recording(cat, ("a cat meowing",))]
