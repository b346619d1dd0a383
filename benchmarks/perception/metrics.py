"""Pairwise precision, recall and F1 of identities; pure.

Every pair of sightings counts: are both of one person, and were they joined? This measures both
splitting one person and merging several.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyannote.core import Annotation


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
    # A package for evaluation only.
    from jiwer import process_words

    true = words_of(said)
    found = process_words(" ".join(true), " ".join(words_of(written)))
    return WordErrors(len(true), found.substitutions + found.deletions + found.insertions)


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
    # Packages for evaluation only.
    from pyannote.core import Segment, Timeline
    from pyannote.metrics.diarization import DiarizationErrorRate

    # There, a collar is the whole width around a border.
    found = DiarizationErrorRate(collar=2 * collar_ms / 1000).compute_components(
        _annotation(reference),
        _annotation(hypothesis),
        uem=Timeline([Segment(start / 1000, end / 1000) for start, end in scored]),
    )
    parts = ("total", "missed detection", "false alarm", "confusion")
    return SpeakerErrors(*(round(1000 * found[part]) for part in parts))


def _annotation(turns: Iterable[SpeakerSpan]) -> Annotation:
    """Return turns in seconds; those of one speaker that touch or overlap are merged."""
    from pyannote.core import Annotation, Segment

    annotation = Annotation()
    for track, turn in enumerate(turns):
        annotation[Segment(turn.start_ms / 1000, turn.end_ms / 1000), track] = turn.who
    return annotation.support()
