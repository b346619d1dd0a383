"""Diarisation error rate: how much of who speaks when is told wrongly; pure.

The plain definition (NIST RT): within the scored time, and outside of a collar around each border
of a reference turn, every instant is weighed by how many speak. Speech that is missed, speech where
there is none, and speech given to the wrong speaker are errors; their sum is divided by all speech
of the reference. Overlapping speech counts. The names of the hypothesis are mapped one to one to
those of the reference so that most time agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

COLLAR_MS = 250
"""Not scored on either side of a border: annotators do not agree more closely."""


@dataclass(frozen=True)
class SpeakerSpan:
    """Somebody speaks, in whole milliseconds; ``end_ms`` is not part of it."""

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
        """The diarisation error rate in percent; above 100 where more is wrong than was said."""
        wrong = self.missed_ms + self.false_ms + self.confused_ms
        return 100.0 * wrong / self.speech_ms if self.speech_ms else (100.0 if wrong else 0.0)


@dataclass(frozen=True)
class _Stretch:
    """A stretch during which nobody begins or ends, and who speaks in it by either account."""

    ms: int
    true: frozenset[str]
    told: frozenset[str]


def speaker_errors(
    reference: Iterable[SpeakerSpan],
    hypothesis: Iterable[SpeakerSpan],
    scored: Sequence[tuple[int, int]],
    collar_ms: int = COLLAR_MS,
) -> SpeakerErrors:
    """What is wrong with ``hypothesis``.

    Args:
        reference: who really speaks when.
        hypothesis: who is said to; its names need not be those of the reference.
        scored: the stretches of time that are looked at, disjoint.
        collar_ms: left out on either side of each border of a reference turn.
    """
    true, told = _merged(reference), _merged(hypothesis)
    stretches = list(_stretches(true, told, scored, collar_ms))
    names = _mapping(stretches)
    total = SpeakerErrors()
    for one in stretches:
        right = sum(names.get(name) in one.true for name in one.told)
        common = min(len(one.true), len(one.told))
        total += SpeakerErrors(
            one.ms * len(one.true),
            one.ms * (len(one.true) - common),
            one.ms * (len(one.told) - common),
            one.ms * (common - right),
        )
    return total


def _merged(turns: Iterable[SpeakerSpan]) -> list[SpeakerSpan]:
    """The same speech without turns of one speaker that touch or overlap, or last no time."""
    merged: list[SpeakerSpan] = []
    for turn in sorted(turns, key=lambda t: (t.who, t.start_ms, t.end_ms)):
        last = merged[-1] if merged else None
        if last and last.who == turn.who and turn.start_ms <= last.end_ms:
            merged[-1] = SpeakerSpan(last.start_ms, max(last.end_ms, turn.end_ms), turn.who)
        elif turn.end_ms > turn.start_ms:
            merged.append(turn)
    return merged


def _stretches(
    true: Sequence[SpeakerSpan],
    told: Sequence[SpeakerSpan],
    scored: Sequence[tuple[int, int]],
    collar_ms: int,
) -> Iterator[_Stretch]:
    borders = {edge for turn in true for edge in (turn.start_ms, turn.end_ms)}
    collars = [(edge - collar_ms, edge + collar_ms) for edge in borders]
    edges = {edge for turn in told for edge in (turn.start_ms, turn.end_ms)} | borders
    edges |= {edge for span in (*collars, *scored) for edge in span}
    for low, high in pairwise(sorted(edges)):
        if _inside(low, scored) and not _inside(low, collars):
            yield _Stretch(high - low, _speaking(low, true), _speaking(low, told))


def _inside(time_ms: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= time_ms < end for start, end in spans)


def _speaking(time_ms: int, turns: Iterable[SpeakerSpan]) -> frozenset[str]:
    return frozenset(turn.who for turn in turns if turn.start_ms <= time_ms < turn.end_ms)


def _mapping(stretches: Sequence[_Stretch]) -> dict[str, str]:
    """The name in the reference of each name told, so that most time agrees."""
    from scipy.optimize import linear_sum_assignment

    true = sorted({name for one in stretches for name in one.true})
    told = sorted({name for one in stretches for name in one.told})
    agreed = np.zeros((len(told), len(true)))
    for one in stretches:
        rows = [told.index(name) for name in one.told]
        columns = [true.index(name) for name in one.true]
        agreed[np.ix_(rows, columns)] += one.ms
    pairs = zip(*linear_sum_assignment(agreed, maximize=True), strict=True)
    return {told[row]: true[column] for row, column in pairs if agreed[row, column] > 0}
