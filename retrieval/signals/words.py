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

    The clips of all videos lie side by side at P places, ``REACH`` empty ones between two that are
    not neighbours in time. ``first`` (V,) counts the clips before each video's, ``breaks`` are the
    numbers of clips, counted over all videos, that begin after a gap or another video. ``cells`` is
    how many clips of the view were watched. ``counts`` has, by word, the places that hold it and
    how many lines do. ``lengths`` (P,) are lines at each place, 1 standing for the mean.
    """

    first: Ints
    total: int
    breaks: Ints
    cells: int
    counts: dict[str, tuple[Ints, Ints]]
    lengths: Scores

    @property
    def size(self) -> int:
        """P."""
        return self.total + REACH * (len(self.breaks) + 1)

    def places(self, videos: Ints, clips: Ints) -> Ints:
        """Return the places of clips (K,) of videos (K,), numbered as the view has them."""
        return _place(self.first[videos] + clips, self.breaks)

    def places_of(self, lines: LineSet) -> Ints:
        """Return the place of every cell of a set, shape (N,)."""
        return self.places(lines.cell_video, lines.cell_clip)

    def clip_at(self, place: int) -> tuple[int, int]:
        """Return the video's number and the clip at a place."""
        starts = self.breaks + REACH * np.arange(1, len(self.breaks) + 1)
        number = place - REACH * int(np.searchsorted(starts, place, side="right"))
        video = int(np.searchsorted(self.first, number, side="right")) - 1
        return video, number - int(self.first[video])

    def with_lengths(self, lines: LineSet, mean: float, others: float) -> WordHits:
        """Return the same with the number of lines of these cells, in parts of the ``mean``.

        ``others`` is that of all other clips: 0 where all clips were fetched, 1 where they may
        have any number.
        """
        lengths = np.where(self._clips, others, 0.0)
        lengths[self.places_of(lines)] = np.diff(lines.bounds) / max(mean, 1e-6)
        return replace(self, lengths=lengths)

    @cached_property
    def _clips(self) -> NDArray[np.bool_]:
        """Which places are clips, (P,)."""
        clips = np.zeros(self.size, dtype=np.bool_)
        clips[_place(np.arange(self.total), self.breaks)] = True
        return clips

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


def _place(numbers: Ints, breaks: Ints) -> Ints:
    """The places of clips by their numbers over all videos."""
    return np.asarray(numbers + REACH * np.searchsorted(breaks, numbers, side="right"))


def word_hits(
    scopes: Sequence[Scope],
    words: Sequence[str],
    found: Mapping[int, Ints],
    cells: int,
    gaps: Iterable[tuple[int, int]] = (),
) -> WordHits:
    """Arrange the clips that hold words by place.

    Args:
        scopes: the view.
        words: the words.
        found: by the number of a word, (K, 3): number of a scope, clip, lines that hold the word.
        cells: how many clips of the view were watched.
        gaps: (number of a scope, clip) of clips that begin after a gap in time.
    """
    lengths = np.array([scope.last_clip + 1 for scope in scopes], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    after = [int(first[video]) + clip for video, clip in gaps]
    breaks = np.unique(np.array([*first[1:].tolist(), *after], dtype=np.int64))
    total = int(lengths.sum())
    none = WordHits(first, total, breaks, max(cells, 1), {}, np.zeros(0))
    counts = {
        words[number]: (none.places(own[:, 0], own[:, 1]), own[:, 2])
        for number, own in found.items()
    }
    return replace(none, counts=counts, lengths=np.ones(none.size))
