"""Words: BM25 over cells and over wider windows around them.

Okapi BM25 (Robertson and Zaragoza, 2009), counted in lines: how many lines hold a word, which the
database finds by full text, and how many lines a window has. Document frequencies are those of the
view. Clips whose lines were not fetched count as having the mean number of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.memories import Scope
from retrieval.line_set import Ints, LineSet, Scores

K1, B = 1.2, 0.6
"""How fast repetitions of a word stop counting, and how much long cells are held back."""
REACH = 16
"""Places between the videos of a view, more than any window reaches."""


@dataclass(frozen=True, eq=False)
class WordHits:
    """Which clips of a view hold which words.

    The clips of all videos lie side by side at P places, ``starts`` (V,) is where each video's
    begin. ``cells`` is how many clips of the view were watched. ``counts`` has, by word, the places
    that hold it and how many lines do.
    """

    words: tuple[str, ...]
    starts: Ints
    size: int
    cells: int
    counts: dict[str, tuple[Ints, Ints]]
    lengths: Scores

    def with_lengths(self, lines: LineSet, mean: float, others: float) -> WordHits:
        """Return the same with the number of lines of these cells, in parts of the ``mean``.

        ``others`` is that of all other places: 0 where all clips were fetched, 1 where they may
        have any number.
        """
        lengths = np.where(self._clips, others, 0.0)
        lengths[self.places_of(lines)] = np.diff(lines.bounds) / max(mean, 1e-6)
        return replace(self, lengths=lengths)

    def places_of(self, lines: LineSet) -> Ints:
        """Return the place of every cell of a set, shape (N,)."""
        return np.asarray(self.starts[lines.cell_video] + lines.cell_clip)

    def clip_at(self, place: int) -> tuple[int, int]:
        """Return the video's number and the clip at a place."""
        video = int(np.searchsorted(self.starts, place, side="right")) - 1
        return video, place - int(self.starts[video])

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word over cells."""
        places, _ = self.counts.get(word, (np.zeros(0), None))
        return rarity(self.cells, len(places))

    def windows(self, word: str, half: int) -> Scores:
        """Return in how many lines a word is, at most ``half`` clips from each place, (P,)."""
        laid = np.zeros(self.size)
        places, counts = self.counts[word]
        laid[places] = counts
        return _summed(laid, half)

    @cached_property
    def _scored(self) -> dict[tuple[str, int], Scores]:
        return {}

    def bm25(self, words: Iterable[str], half: int) -> Scores:
        """Return the BM25 scores of words in the windows around every place, shape (P,)."""
        total = np.zeros(self.size)
        for word in sorted(set(words)):
            if word in self.counts:
                total += self._of_word(word, half)
        return total

    def _of_word(self, word: str, half: int) -> Scores:
        if (word, half) not in self._scored:
            self._scored[word, half] = self._score(word, half)
        return self._scored[word, half]

    def _score(self, word: str, half: int) -> Scores:
        around = self.windows(word, half)
        held = around
        if half == 1:
            # A neighbour counts half: it is beside the cell, not in it.
            held = (around + self.windows(word, 0)) / 2
        holding = int(np.count_nonzero(around[self._clips]))
        weight = (K1 + 1) * rarity(self.cells, min(self.cells, holding))
        return np.asarray(weight * held / (held + self._norms(half)))

    @cached_property
    def _clips(self) -> NDArray[np.bool_]:
        """Which places are clips of a video, not between videos, (P,)."""
        clips = np.zeros(self.size, dtype=np.bool_)
        ends = np.append(self.starts[1:], self.size) - REACH
        for start, end in zip(self.starts.tolist(), ends.tolist(), strict=False):
            clips[start:end] = True
        return clips

    def _norms(self, half: int) -> Scores:
        """How far repeated words are held back in the window around every place, (P,)."""
        relative = _summed(self.lengths, half) / (2 * half + 1)
        return np.asarray(K1 * (1 - B + B * relative))


def _summed(values: Scores, half: int) -> Scores:
    """Sums over at most ``half`` places to both sides of each, (P,)."""
    sums = np.cumsum(np.concatenate([np.zeros(REACH + 1), values, np.zeros(REACH)]))
    start = REACH - half
    return np.asarray(sums[start + 2 * half + 1 :][: len(values)] - sums[start:][: len(values)])


def rarity(cells: int, holding: int) -> float:
    """Return the inverse document frequency of a word that ``holding`` of ``cells`` have."""
    return float(np.log(1 + (cells - holding + 0.5) / (holding + 0.5)))


def word_hits(
    scopes: Sequence[Scope], words: Sequence[str], found: Mapping[int, Ints], cells: int
) -> WordHits:
    """Arrange the clips that hold words by place.

    Args:
        scopes: the view.
        words: the words.
        found: by the number of a word, (K, 3): number of a scope, clip, lines that hold the word.
        cells: how many clips of the view were watched.
    """
    lengths = np.array([scope.last_clip + 1 + REACH for scope in scopes], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    counts: dict[str, tuple[Ints, Ints]] = {}
    for number, own in found.items():
        counts[words[number]] = (starts[own[:, 0]] + own[:, 1], own[:, 2])
    size = int(lengths.sum())
    return WordHits(tuple(words), starts, size, max(cells, 1), counts, np.ones(size))
