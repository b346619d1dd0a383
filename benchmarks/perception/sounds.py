"""Evaluation of recognised sounds: recordings of known sounds put into people's speech.

Each recording is heard once in a pause of the speech and once beneath it, as loud as the speech.
Recordings come from packages of Debian, speech from the marked recordings of the shared clips.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from domain.media import Sound
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples, SoundClassifier
from perception.decode import decode_audio
from perception.hearing import find_sounds
from perception.source import clips_of, probe

RECORDINGS = Path(__file__).with_name("sounds.toml")
SHARE = Path("/usr/share")
"""Where Debian's packages have their files."""
TRACKS = 5
"""Speech alone, and two tracks a package."""
SPEECH_S = 6
"""Speech between two sounds."""
LEAST_S, MOST_S = 2.0, 8.0
"""A shorter recording is repeated, with pauses, as a dog barks again; a longer one is cut."""
PAUSE_S = 0.3
LOUDNESS = 0.08
"""Root mean square of the louder half, for speech and sounds alike."""
NOISE = 0.0008
"""What a microphone adds to a pause."""


@dataclass(frozen=True)
class Recording:
    """A recording, and the kinds of sound that are right for it."""

    path: Path
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class PlacedSound:
    """A sound in a track, and the kinds that are right for it."""

    span: TimeSpan
    kinds: tuple[str, ...]

    def matches(self, sound: Sound) -> bool:
        """Whether a recognised sound is this one."""
        return sound.kind in self.kinds and self.span.overlap_ms(sound.span) > 0


@dataclass(frozen=True)
class SoundReport:
    """What was recognised of the sounds of one track.

    ``placed`` sounds are in it, of which ``found`` were recognised; ``told`` were recognised, of
    which ``right`` are there. ``length_s`` of audio took ``seconds``.
    """

    name: str
    placed: int
    found: int
    told: int
    right: int
    length_s: float
    seconds: float

    @property
    def recall(self) -> float:
        """Return the share of sounds that were recognised; 1 where there are none."""
        return self.found / self.placed if self.placed else 1.0

    @property
    def precision(self) -> float:
        """Return the share of recognised sounds that are there; 1 where there are none."""
        return self.right / self.told if self.told else 1.0

    @property
    def speed(self) -> float:
        """Return how many seconds of audio take a second."""
        return self.length_s / self.seconds


def installed_recordings(share: Path = SHARE) -> dict[str, list[Recording]]:
    """Return the recordings of each package that are on this machine, by the package's name."""
    table = tomllib.loads(RECORDINGS.read_text(encoding="utf-8"))
    return {
        name: [
            Recording(share / package["folder"] / file, tuple(kinds))
            for file, kinds in package["files"].items()
            if (share / package["folder"] / file).is_file()
        ]
        for name, package in table.items()
    }


def judge_sounds(
    speech: Sequence[Path],
    classifier: SoundClassifier,
    settings: WatchSettings,
    on_track: Callable[[], None],
) -> tuple[list[SoundReport], list[str]]:
    """Measure each package's recordings in pauses and beneath speech, and speech alone.

    Returns:
        The reports, and the packages that are not installed.
    """
    talk = np.concatenate([_even(_decoded(path, settings)) for path in speech])
    packages = installed_recordings()
    reports = [judge_track("speech alone", talk, (), classifier, settings)]
    on_track()
    for name, recordings in packages.items():
        for beneath in (False, True) if recordings else ():
            track, placed = make_track(recordings, talk, settings, beneath=beneath)
            label = f"{name}, {'beneath speech' if beneath else 'in pauses'}"
            reports.append(judge_track(label, track, placed, classifier, settings))
            on_track()
    return reports, [f"Debian's {name}" for name, found in packages.items() if not found]


def make_track(
    recordings: Iterable[Recording], talk: Samples, settings: WatchSettings, *, beneath: bool
) -> tuple[Samples, tuple[PlacedSound, ...]]:
    """Return a track with all recordings in speech, and where they are in it."""
    hz, pieces, placed, at = settings.audio_hz, [], [], 0
    spoken = _stretches(talk)
    noise = np.random.default_rng(0)
    for one in recordings:
        pieces.append(spoken(SPEECH_S * hz))
        sound = _sounding(_decoded(one.path, settings), hz)
        there = spoken(len(sound)) if beneath else noise.normal(0, NOISE, len(sound))
        pieces.append(np.clip(sound + there, -1, 1))
        start = at + SPEECH_S * hz
        at = start + len(sound)
        span = TimeSpan.of(start * 1000 // hz, at * 1000 // hz)
        placed.append(PlacedSound(span, one.kinds))
    return np.concatenate(pieces).astype(np.float32), tuple(placed)


def judge_track(
    name: str,
    track: Samples,
    placed: Sequence[PlacedSound],
    classifier: SoundClassifier,
    settings: WatchSettings,
) -> SoundReport:
    """Recognise the sounds of a track clip by clip, and compare them with those in it."""
    start = time.perf_counter()
    told = list(_recognised(track, classifier, settings))
    return SoundReport(
        name=name,
        placed=len(placed),
        found=sum(any(one.matches(sound) for sound in told) for one in placed),
        told=len(told),
        right=sum(any(one.matches(sound) for one in placed) for sound in told),
        length_s=len(track) / settings.audio_hz,
        seconds=time.perf_counter() - start,
    )


def _recognised(
    track: Samples, classifier: SoundClassifier, settings: WatchSettings
) -> Iterator[Sound]:
    for clip in clips_of(len(track) * 1000 // settings.audio_hz, settings):
        start, end = (
            ms * settings.audio_hz // 1000 for ms in (clip.span.start_ms, clip.span.end_ms)
        )
        yield from find_sounds(track[start:end], classifier, clip, settings)


def _decoded(path: Path, settings: WatchSettings) -> Samples:
    info = probe(path)
    clips = clips_of(info.duration_ms, settings)
    pieces = [decode_audio(path, info, clip, settings.audio_hz).samples for clip in clips]
    return np.concatenate(pieces)


def _even(samples: Samples) -> Samples:
    """Return the samples with the loudness of all others."""
    squares = np.sort(samples.astype(np.float64) ** 2)
    loud = float(np.sqrt(squares[len(squares) // 2 :].mean()))
    return np.asarray(samples * (LOUDNESS / max(loud, 1e-6)), np.float32)


def _sounding(samples: Samples, hz: int) -> Samples:
    """Return a recording repeated until it is long enough, and cut where it is too long."""
    once = _even(samples)
    pause = np.zeros(round(PAUSE_S * hz), np.float32)
    times = max(1, -(-round(LEAST_S * hz) // (len(once) + len(pause))))
    whole = np.concatenate([np.concatenate([once, pause]) for _ in range(times)])
    return whole[: round(MOST_S * hz)]


def _stretches(talk: Samples) -> Callable[[int], NDArray[np.float32]]:
    """Return what cuts the next so many samples of speech, from its start again at its end."""
    at = 0

    def cut(count: int) -> NDArray[np.float32]:
        nonlocal at
        at += count
        return talk[np.arange(at - count, at) % len(talk)]

    return cut
