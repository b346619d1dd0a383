"""The word signal: BM25 over cells and over windows around them.

Okapi BM25 (Robertson and Zaragoza, 2009), counted in lines: the term frequency is the number of
lines with a word, from the database's full text search; the document length is the number of lines
in a window. Document frequencies are those of the view. Clips whose lines were not fetched are
assumed to have the mean number of lines.
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
"""BM25's k1 (saturation of term frequency) and b (normalisation by length)."""
REACH = 16
"""Empty places between two videos: no window is wider to either side."""


@dataclass(frozen=True, eq=False)
class WordHits:
    """An inverted index of a search's words: the clips of the view that contain them.

    The clips of all videos are laid out in one array of P places, with ``REACH`` empty ones between
    two clips that are not neighbours in time. ``first`` (V,) is the number of clips before each
    video; ``breaks`` are the numbers of clips, counted over all videos, that begin after a gap or
    another video. ``cells`` is the number of clips in view. ``counts`` are postings by word: the
    places that contain it, and their numbers of lines with it. ``lengths`` (P,) is the number of
    lines at each place, in multiples of the mean.
    """

    first: Ints
    total: int
    breaks: Ints
    cells: int
    counts: dict[str, tuple[Ints, Ints]]
    lengths: Scores

    @property
    def size(self) -> int:
        """P, the number of places."""
        return self.total + REACH * (len(self.breaks) + 1)

    def places(self, videos: Ints, clips: Ints) -> Ints:
        """Return the places of clips (K,) of videos (K,), numbered as the view has them."""
        return _places(self.first[videos] + clips, self.breaks)

    def places_of(self, lines: LineSet) -> Ints:
        """Return the place of every cell of a set, shape (N,)."""
        return self.places(lines.cell_video, lines.cell_clip)

    def clip_at(self, place: int) -> tuple[int, int]:
        """Return the video's number and the clip at a place."""
        starts = self.breaks + REACH * np.arange(1, len(self.breaks) + 1)
        number = place - REACH * int(np.searchsorted(starts, place, side="right"))
        video = int(np.searchsorted(self.first, number, side="right")) - 1
        return video, number - int(self.first[video])

    def with_lengths(self, lines: LineSet, mean: float, default_length: float) -> WordHits:
        """Set the lengths of these cells, in multiples of the ``mean`` number of lines.

        ``default_length`` is the length of all other clips: 0 if all clips with lines were
        fetched, else 1.
        """
        lengths = np.where(self._clips, default_length, 0.0)
        lengths[self.places_of(lines)] = np.diff(lines.bounds) / max(mean, 1e-6)
        return replace(self, lengths=lengths)

    @cached_property
    def _clips(self) -> NDArray[np.bool_]:
        """Which places are clips, (P,)."""
        clips = np.zeros(self.size, dtype=np.bool_)
        clips[_places(np.arange(self.total), self.breaks)] = True
        return clips

    def inverse_document_frequency(self, word: str) -> float:
        """Return the inverse document frequency of a word over cells."""
        places, _ = self.counts.get(word, (np.zeros(0), None))
        return inverse_document_frequency(self.cells, len(places))

    def window_frequencies(self, word: str, half: int) -> Scores:
        """Return the number of lines with a word up to ``half`` clips from each place, (P,)."""
        lines = np.zeros(self.size)
        places, counts = self.counts[word]
        lines[places] = counts
        return _window_sums(lines, half)

    @cached_property
    def _score_cache(self) -> dict[tuple[str, int], Scores]:
        return {}

    def bm25(self, words: Iterable[str], half: int) -> Scores:
        """Return the BM25 scores of words in the windows around every place, shape (P,)."""
        total = np.zeros(self.size)
        for word in sorted(set(words)):
            if word in self.counts:
                total += self._word_scores(word, half)
        return total

    def _word_scores(self, word: str, half: int) -> Scores:
        if (word, half) not in self._score_cache:
            self._score_cache[word, half] = self._score_word(word, half)
        return self._score_cache[word, half]

    def _score_word(self, word: str, half: int) -> Scores:
        window_frequency = self.window_frequencies(word, half)
        frequency = window_frequency
        if half == 1:
            # The cell itself counts fully, its neighbours half.
            frequency = (window_frequency + self.window_frequencies(word, 0)) / 2
        document_frequency = int(np.count_nonzero(window_frequency[self._clips]))
        weight = (K1 + 1) * inverse_document_frequency(
            self.cells, min(self.cells, document_frequency)
        )
        return np.asarray(weight * frequency / (frequency + self._length_norm(half)))

    @cached_property
    def _norms(self) -> dict[int, Scores]:
        return {}

    def _length_norm(self, half: int) -> Scores:
        """Return BM25's length normalisation of the window around every place, (P,)."""
        if half not in self._norms:
            relative = _window_sums(self.lengths, half) / (2 * half + 1)
            self._norms[half] = np.asarray(K1 * (1 - B + B * relative))
        return self._norms[half]


def _window_sums(values: Scores, half: int) -> Scores:
    """Return sums over up to ``half`` places to both sides of each, (P,)."""
    sums = np.cumsum(np.concatenate([np.zeros(REACH + 1), values, np.zeros(REACH)]))
    start = REACH - half
    return np.asarray(sums[start + 2 * half + 1 :][: len(values)] - sums[start:][: len(values)])


def inverse_document_frequency(cells: int, document_frequency: int) -> float:
    """Return the inverse document frequency of a word that ``holding`` of ``cells`` have."""
    return float(np.log(1 + (cells - document_frequency + 0.5) / (document_frequency + 0.5)))


def _places(numbers: Ints, breaks: Ints) -> Ints:
    """Return the places of clips, numbered over all videos."""
    return np.asarray(numbers + REACH * np.searchsorted(breaks, numbers, side="right"))


def word_hits(
    scopes: Sequence[Scope],
    words: Sequence[str],
    lines_by_clip: Mapping[int, Ints],
    cells: int,
    gaps: Iterable[tuple[int, int]] = (),
) -> WordHits:
    """Build the inverted index from the clips that contain each word.

    Args:
        lines_by_clip: By the number of a word, (K, 3): scope, clip, number of lines with the word.
        cells: Number of clips in view.
        gaps: (number of a scope, clip) of clips that begin after a gap in time.
    """
    lengths = np.array([scope.last_clip + 1 for scope in scopes], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    after = [int(first[video]) + clip for video, clip in gaps]
    breaks = np.unique(np.array([*first[1:].tolist(), *after], dtype=np.int64))
    total = int(lengths.sum())
    empty = WordHits(first, total, breaks, max(cells, 1), {}, np.zeros(0))
    counts = {
        words[number]: (empty.places(hits[:, 0], hits[:, 1]), hits[:, 2])
        for number, hits in lines_by_clip.items()
    }
    return replace(empty, counts=counts, lengths=np.ones(empty.size))
