"""Pairwise precision, recall and F1 of identities; pure.

Every pair of sightings counts: are both of one person, and were they joined? This measures both
splitting one person and merging several.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Pairs:
    """Pairs of one person that were joined, joined pairs, and pairs of one person."""

    right: int
    joined: int
    same: int

    @property
    def precision(self) -> float:
        """Return the share of the joined pairs that are of one person; 1 of nothing."""
        return self.right / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the pairs of one person that were joined; 1 of nothing."""
        return self.right / self.same if self.same else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def count_pairs(sightings: Iterable[tuple[Hashable, Hashable]]) -> Pairs:
    """Count the pairs of sightings, each given as (true person, assigned identity)."""
    all_sightings = list(sightings)
    return Pairs(
        right=_pairs(Counter(all_sightings)),
        joined=_pairs(Counter(assigned for _, assigned in all_sightings)),
        same=_pairs(Counter(true for true, _ in all_sightings)),
    )


def _pairs(sizes: Counter[Hashable] | Counter[tuple[Hashable, Hashable]]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes.values())


TOLERANCE_MS = 250
"""Tolerance of a cut's position: a little more than one sample at five per second."""


@dataclass(frozen=True)
class Cuts:
    """How many cuts there are, how many were detected, and how many of those are right."""

    true: int = 0
    told: int = 0
    right: int = 0

    def __add__(self, other: Cuts) -> Cuts:
        return Cuts(self.true + other.true, self.told + other.told, self.right + other.right)

    @property
    def precision(self) -> float:
        """Return the share of detected cuts that are right; 1 if none was detected."""
        return self.right / self.told if self.told else 1.0

    @property
    def recall(self) -> float:
        """Return the share of the cuts that were detected; 1 if there are none."""
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def compare_cuts(true: Sequence[int], detected: Sequence[int], tolerance_ms: int) -> Cuts:
    """Pair each cut with one detected at most ``tolerance_ms`` away, as many as possible.

    Both in milliseconds, in any order. On a line, pairing the earliest that fit gives the most
    pairs.
    """
    unpaired, right = sorted(detected), 0
    for cut in sorted(true):
        while unpaired and unpaired[0] < cut - tolerance_ms:
            unpaired.pop(0)
        if unpaired and unpaired[0] <= cut + tolerance_ms:
            unpaired.pop(0)
            right += 1
    return Cuts(len(true), len(detected), right)


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")


@dataclass(frozen=True)
class WordErrors:
    """The number of words said, and the edits between them and the transcript."""

    words: int = 0
    edits: int = 0

    def __add__(self, other: WordErrors) -> WordErrors:
        return WordErrors(self.words + other.words, self.edits + other.edits)

    @property
    def rate(self) -> float:
        """Return the word error rate in percent; it may exceed 100."""
        return 100.0 * self.edits / self.words if self.words else (100.0 if self.edits else 0.0)


def words_of(text: str) -> list[str]:
    """Split a text into normalised words."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    return _WORD.findall(plain)


def word_errors(said: str, written: str) -> WordErrors:
    """Count the errors of ``written``."""
    true = words_of(said)
    return WordErrors(len(true), _edits(true, words_of(written)))


def _edits(true: Sequence[str], written: Sequence[str]) -> int:
    """Return the Levenshtein distance between two lists of words."""
    row = list(range(len(written) + 1))
    for at, word in enumerate(true, 1):
        last, row[0] = row[0], at
        for column, other_word in enumerate(written, 1):
            replaced = last + (word != other_word)
            last = row[column]
            row[column] = min(replaced, row[column] + 1, row[column - 1] + 1)
    return row[-1]


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
