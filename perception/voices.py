"""Diarises the speech of one clip: voices as groups of turns (section 3.1).

Speech is cut into windows of 1.5 s; their embeddings are clustered; what is too small to be a
person is given to the voice it is most like; windows of one voice in a row are a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Group, IdentityKind, Sighting
from domain.time import TimeSpan
from models.onnx import map_in_threads
from perception.clustering import cluster, renumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Samples, SpeakerEncoder, Vector

WINDOW_MS = 1_500
HOP_MS = 750
_MIN_SPEECH_MS = 400
_MERGE_COSINE = 0.3
"""Mean cosine at which clusters of windows merge (cosine distance 0.7). Windows are short, and so
less alike than the turns for which the encoder states its own threshold."""
_MIN_WINDOWS = 3
"""Clusters of fewer windows are absorbed, where there is a larger one."""
_PAUSE_MS = 500
_MAX_EMBEDDED_MS = 10_000
"""What is embedded of a turn at most: more says no more about the voice."""


@dataclass(frozen=True)
class SpeakerTurn:
    """A turn of one voice, in milliseconds from the clip's start."""

    start_ms: int
    end_ms: int
    voice: int

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms


def find_turns(
    samples: Samples, spans: Sequence[tuple[int, int]], encoder: SpeakerEncoder, hz: int
) -> list[SpeakerTurn]:
    """Return turns in order; voices are numbered from 0 in order of first appearance.

    Args:
        samples: mono audio of the clip, values in [-1, 1].
        spans: where somebody speaks, in milliseconds, in order, disjoint.
    """
    windows = [window for start, end in spans for window in cut_windows(start, end)]
    if not windows:
        return []
    vectors = np.stack(map_in_threads(lambda w: encoder.embed(_slice(samples, *w, hz)), windows))
    voices = absorb_small(vectors, cluster(vectors, _MERGE_COSINE), _MIN_WINDOWS)
    # Join windows to turns: overlapping windows meet half-way, short pauses are bridged.
    turns: list[SpeakerTurn] = []
    for start, end in spans:
        in_span = [(w, v) for w, v in zip(windows, voices, strict=True) if start <= w[0] < end]
        turns += _turns_of_span(start, end, in_span)
    return bridge_pauses(turns)


def cut_windows(start_ms: int, end_ms: int) -> list[tuple[int, int]]:
    """Return windows of 1.5 s every 0.75 s that cover a span; one if it is shorter."""
    if end_ms - start_ms < _MIN_SPEECH_MS:
        return []
    if end_ms - start_ms <= WINDOW_MS:
        return [(start_ms, end_ms)]
    last = end_ms - WINDOW_MS
    return [(s, s + WINDOW_MS) for s in (*range(start_ms, last, HOP_MS), last)]


def absorb_small(vectors: NDArray[np.float32], labels: Sequence[int], min_size: int) -> list[int]:
    """Assign clusters smaller than ``min_size`` to the most similar larger cluster."""
    sizes = Counter(labels)
    large = sorted(label for label, size in sizes.items() if size >= min_size)
    if not large:
        large = [min(label for label, size in sizes.items() if size == max(sizes.values()))]
    rows = np.array(labels)
    means = np.stack([vectors[rows == label].mean(axis=0) for label in large])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest = np.argmax(vectors @ means.T, axis=1)
    absorbed = [
        label if label in large else large[near]
        for label, near in zip(labels, nearest, strict=True)
    ]
    return renumber(absorbed)


def _slice(samples: Samples, start_ms: int, end_ms: int, hz: int) -> Samples:
    return samples[start_ms * hz // 1000 : end_ms * hz // 1000]


def _turns_of_span(
    start: int, end: int, windows: Sequence[tuple[tuple[int, int], int]]
) -> list[SpeakerTurn]:
    if not windows:
        return []
    edges = [start]
    edges += [(a[1] + b[0]) // 2 for (a, _), (b, _) in pairwise(windows)]
    edges.append(end)
    pieces = [
        SpeakerTurn(low, high, voice)
        for (low, high), (_, voice) in zip(pairwise(edges), windows, strict=True)
    ]
    runs = (list(run) for _, run in groupby(pieces, key=lambda piece: piece.voice))
    return [SpeakerTurn(run[0].start_ms, run[-1].end_ms, run[0].voice) for run in runs]


def bridge_pauses(turns: Sequence[SpeakerTurn]) -> list[SpeakerTurn]:
    """Join turns of one voice that are less than half a second apart."""
    bridged: list[SpeakerTurn] = []
    for turn in turns:
        last = bridged[-1] if bridged else None
        if last and last.voice == turn.voice and turn.start_ms - last.end_ms < _PAUSE_MS:
            bridged[-1] = SpeakerTurn(last.start_ms, turn.end_ms, turn.voice)
        else:
            bridged.append(turn)
    return bridged


def group_voices(
    turns: Sequence[SpeakerTurn],
    samples: Samples,
    clip: Clip,
    encoder: SpeakerEncoder,
    settings: WatchSettings,
) -> tuple[Group, ...]:
    """Return a group for each voice with a long enough turn; its sightings are those turns."""
    known = [turn for turn in turns if turn.length_ms >= settings.voice_turn_ms]
    vectors = map_in_threads(
        lambda turn: encoder.embed(
            _slice(
                samples,
                turn.start_ms,
                min(turn.end_ms, turn.start_ms + _MAX_EMBEDDED_MS),
                settings.audio_hz,
            )
        ),
        known,
    )
    of_voice: dict[int, list[tuple[SpeakerTurn, Vector]]] = {}
    for turn, vector in zip(known, vectors, strict=True):
        of_voice.setdefault(turn.voice, []).append((turn, vector))
    return tuple(_group(voice, of_voice[voice], clip) for voice in sorted(of_voice))


def _group(voice: int, turns: Sequence[tuple[SpeakerTurn, Vector]], clip: Clip) -> Group:
    """Score each turn by its cosine to the voice's mean; its quality is its length in seconds."""
    mean = np.sum([vector for _, vector in turns], axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return Group(
        kind=IdentityKind.VOICE,
        number=voice,
        sightings=tuple(
            Sighting(
                span=clip_span(turn.start_ms, turn.end_ms, clip),
                score=min(1.0, max(0.0, float(vector @ mean))),
                quality=turn.length_ms / 1000,
                vector=tuple(float(value) for value in vector),
            )
            for turn, vector in turns
        ),
    )


def clip_span(start_ms: int, end_ms: int, clip: Clip) -> TimeSpan:
    """Return a span of the clip's samples as video time, clipped to the clip."""
    zero, last = clip.span.start_ms, clip.span.end_ms
    start = min(zero + max(0, start_ms), last)
    return TimeSpan.of(start, min(max(start, zero + end_ms), last))
