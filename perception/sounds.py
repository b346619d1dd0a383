"""Recognises sounds other than speech in one clip, and merges them into events with times.

Classes of the model that mean one thing are one kind of sound (``sound_kinds.toml``). A kind is
heard in a window from a score on; windows without a longer pause between them are one event. The
windows of a clip see nothing of another clip, so that it can be redone alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Sound
from perception.voices import clip_span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Samples, SoundClassifier

KINDS = Path(__file__).with_name("sound_kinds.toml")


@cache
def sound_kinds() -> Mapping[str, tuple[str, ...]]:
    """Return the classes of each kind of sound that is remembered."""
    table = tomllib.loads(KINDS.read_text(encoding="utf-8"))
    return {kind: tuple(classes) for kind, classes in table["kinds"].items()}


def find_sounds(
    samples: Samples, classifier: SoundClassifier, clip: Clip, settings: WatchSettings
) -> tuple[Sound, ...]:
    """Return the sounds of a clip in order of time, without speech, silence and noise.

    Args:
        samples: mono audio of the clip, values in [-1, 1].
        settings: ``sound_score``, ``sound_ms``, ``sound_pause_ms`` and ``audio_hz``.
    """
    scores = classifier.scores(samples)
    to_ms = 1000 / settings.audio_hz
    window_ms, hop_ms = classifier.window * to_ms, classifier.hop * to_ms
    length_ms = round(len(samples) * to_ms)
    # Each window stands for the hop around its middle; those at the ends reach the ends.
    last_ms = max(0.0, length_ms - window_ms)
    middles = [min(number * hop_ms, last_ms) + window_ms / 2 for number in range(len(scores))]
    starts = [0, *(round(middle - hop_ms / 2) for middle in middles[1:])]
    ends = [*(round(middle + hop_ms / 2) for middle in middles[:-1]), length_ms]
    place = {label: number for number, label in enumerate(classifier.labels)}
    # The score of each kind in each window: that of its most likely class.
    of_kinds = {
        kind: scores[:, [place[one] for one in classes]].max(axis=1)
        for kind, classes in sound_kinds().items()
    }
    found = [
        Sound(
            span=clip_span(starts[int(run[0])], ends[int(run[-1])], clip),
            kind=kind,
            score=float(values[run].max()),
        )
        for kind, values in of_kinds.items()
        for run in _runs(np.flatnonzero(values >= settings.sound_score), hop_ms, settings)
    ]
    return tuple(sorted(found, key=lambda one: (one.span.start_ms, one.span.end_ms, one.kind)))


def _runs(
    heard: NDArray[np.intp], hop_ms: float, settings: WatchSettings
) -> Iterator[NDArray[np.intp]]:
    """Yield windows that belong together, where there are enough of them."""
    breaks = np.flatnonzero((np.diff(heard) - 1) * hop_ms > settings.sound_pause_ms) + 1
    for run in np.split(heard, breaks):
        if len(run) * hop_ms >= settings.sound_ms:
            yield run
