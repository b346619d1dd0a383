"""Diarisation error rate: how much of who speaks when is wrong; pure.

The plain definition (NIST RT): within the scored time, and outside of a collar around each border
of a reference turn, every instant is weighed by how many speak. Missed speech, speech where there
is none, and speech given to the wrong speaker are errors; their sum is divided by all speech of the
reference. Overlapping speech counts. The names of the hypothesis are mapped one to one to those of
the reference so that most time agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

COLLAR_MS = 250
"""Unscored time on either side of a border: annotators do not agree more closely."""


@dataclass(frozen=True)
class SpeakerSpan:
    """Speech of one speaker, in whole milliseconds; ``end_ms`` is exclusive."""

    start_ms: int
    end_ms: int
    who: str


@dataclass(frozen=True)
class SpeakerErrors:
    """Milliseconds of speech: of the reference, and of each kind of error."""

    speech_ms: int = 0
    missed_ms: int = 0
    false_ms: int = 0
    confused_ms: int = 0

    def __add__(self, other: SpeakerErrors) -> SpeakerErrors:
        return SpeakerErrors(
            self.speech_ms + other.speech_ms,
            self.missed_ms + other.missed_ms,
            self.false_ms + other.false_ms,
            self.confused_ms + other.confused_ms,
        )

    @property
    def rate(self) -> float:
        """Return the diarisation error rate in percent; it may exceed 100."""
        wrong = self.missed_ms + self.false_ms + self.confused_ms
        return 100.0 * wrong / self.speech_ms if self.speech_ms else (100.0 if wrong else 0.0)


@dataclass(frozen=True)
class _SpeakerInterval:
    """A time span in which nobody begins or ends, with the speakers by either account."""

    ms: int
    true: frozenset[str]
    detected: frozenset[str]


def speaker_errors(
    reference: Iterable[SpeakerSpan],
    hypothesis: Iterable[SpeakerSpan],
    scored: Sequence[tuple[int, int]],
    collar_ms: int = COLLAR_MS,
) -> SpeakerErrors:
    """Measure the errors of ``hypothesis``.

    Args:
        reference: the true speakers.
        hypothesis: the detected speakers; their names need not be those of the reference.
        scored: the scored time spans, disjoint.
        collar_ms: unscored time on either side of each border of a reference turn.
    """
    true, detected = _merged(reference), _merged(hypothesis)
    intervals = list(_intervals(true, detected, scored, collar_ms))
    names = _mapping(intervals)
    total = SpeakerErrors()
    for interval in intervals:
        right = sum(names.get(name) in interval.true for name in interval.detected)
        common = min(len(interval.true), len(interval.detected))
        total += SpeakerErrors(
            interval.ms * len(interval.true),
            interval.ms * (len(interval.true) - common),
            interval.ms * (len(interval.detected) - common),
            interval.ms * (common - right),
        )
    return total


def _merged(turns: Iterable[SpeakerSpan]) -> list[SpeakerSpan]:
    """Merge turns of one speaker that touch or overlap, and drop empty ones."""
    merged: list[SpeakerSpan] = []
    for turn in sorted(turns, key=lambda t: (t.who, t.start_ms, t.end_ms)):
        last = merged[-1] if merged else None
        if last and last.who == turn.who and turn.start_ms <= last.end_ms:
            merged[-1] = SpeakerSpan(last.start_ms, max(last.end_ms, turn.end_ms), turn.who)
        elif turn.end_ms > turn.start_ms:
            merged.append(turn)
    return merged


def _intervals(
    true: Sequence[SpeakerSpan],
    detected: Sequence[SpeakerSpan],
    scored: Sequence[tuple[int, int]],
    collar_ms: int,
) -> Iterator[_SpeakerInterval]:
    borders = {edge for turn in true for edge in (turn.start_ms, turn.end_ms)}
    collars = [(edge - collar_ms, edge + collar_ms) for edge in borders]
    edges = {edge for turn in detected for edge in (turn.start_ms, turn.end_ms)} | borders
    edges |= {edge for span in (*collars, *scored) for edge in span}
    for low, high in pairwise(sorted(edges)):
        if _inside(low, scored) and not _inside(low, collars):
            yield _SpeakerInterval(high - low, _speaking(low, true), _speaking(low, detected))


def _inside(time_ms: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= time_ms < end for start, end in spans)


def _speaking(time_ms: int, turns: Iterable[SpeakerSpan]) -> frozenset[str]:
    return frozenset(turn.who for turn in turns if turn.start_ms <= time_ms < turn.end_ms)


def _mapping(intervals: Sequence[_SpeakerInterval]) -> dict[str, str]:
    """Map detected names to reference names, so that most time agrees."""
    from scipy.optimize import linear_sum_assignment

    true = sorted({name for interval in intervals for name in interval.true})
    detected = sorted({name for interval in intervals for name in interval.detected})
    agreed = np.zeros((len(detected), len(true)))
    for interval in intervals:
        rows = [detected.index(name) for name in interval.detected]
        columns = [true.index(name) for name in interval.true]
        agreed[np.ix_(rows, columns)] += interval.ms
    pairs = zip(*linear_sum_assignment(agreed, maximize=True), strict=True)
    return {detected[row]: true[column] for row, column in pairs if agreed[row, column] > 0}
