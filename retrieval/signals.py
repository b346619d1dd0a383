"""The signals of ranking: people, time, vectors and words (BM25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from bm25s import BM25
from numpy.typing import NDArray
from scipy.sparse import csr_array

from domain.memories import Scope
from retrieval.heuristics.options import (
    FIRST_PERSON_SHARE,
    actor_lines,
    are_people,
    people_in_option,
    plain_names,
)
from retrieval.heuristics.questions import HOUR, PLAN, temporal_fit
from retrieval.lines import Floats, Ints, LineSet, Matrix, Scores, dot_products
from store.queries.search import StoredLine

# The people signal: how well actions and words of the people of each option fit the question.


@dataclass(frozen=True)
class Roster:
    """The speakers of a view: lines by name, the narrator, and whether one narrates in view."""

    lines: Mapping[str, int]
    narrator: str | None
    narrated: bool

    def people(self, options: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the people that each option names; [] if the options are not people."""
        known = plain_names(self.lines)
        people = [people_in_option(option, known, self.narrator) for option in options]
        return people if are_people(people) else []


def roster(speakers: Mapping[str, int], sample: Sequence[StoredLine]) -> Roster:
    """Find the narrator: the most frequent speaker, if descriptions are in the first person."""
    actors = actor_lines(sample)
    narrated = actors.first_person.sum() >= FIRST_PERSON_SHARE * max(1, actors.descriptions.sum())
    narrator = most_frequent(speakers) if narrated else None
    return Roster(speakers, narrator, bool(narrated))


def most_frequent(speakers: Mapping[str, int]) -> str | None:
    """Return the most frequent speaker with a plain name; None without any."""
    line_counts = {name: speakers[name] for name in sorted(plain_names(speakers).values())}
    return max(line_counts, key=lambda name: line_counts[name], default=None)


def actor_fits(
    lines: LineSet, roster: Roster, people: Sequence[tuple[str, ...]], cosines: Floats, floor: float
) -> Scores:
    """Score each option (O,) in each cell (N,) by the closest line of its people, shape (O, N).

    Args:
        roster: Speakers and narrator.
        people: The people that each option names.
        cosines: Cosines of every line (M,) with the question as a statement about someone.
        floor: The mean of such cosines, for cells without a line of these people.
    """
    actors = actor_lines([row for _, row in lines.rows])
    speakers = sorted(plain_names(roster.lines).values())
    closest = {}
    for name in sorted({name for option in people for name in option}):
        mask = actors.mask([name], narrator=name == roster.narrator, speakers=speakers)
        closest[name] = lines.largest(np.where(mask, cosines, floor))
    fits = np.full((len(people), lines.cell_count), floor)
    for number, names in enumerate(people):
        if names:
            fits[number] = np.mean([closest[name] for name in names], axis=0)
    return fits


# The time signals: recency, and the fit of a cell with a temporal expression.

SOON_S = 60.0
"""Cells less than this many seconds before the question are equally recent."""
QUESTION_FLOOR, OPTION_FLOOR = 0.05, 0.02
"""Added to fits in [0, 1], so that their logarithms are bounded."""


def recency(times: Scores, now_s: float) -> Scores:
    """Return minus the log of the age in hours of each time (N,)."""
    return np.asarray(-np.log(np.maximum(now_s - times, SOON_S) / HOUR))


def question_fit(question: str, times: Scores, now_s: float) -> Scores:
    """Return the log fit of each time with the question's temporal expression; zeros for none."""
    fit = None if PLAN.search(question) else temporal_fit(question, times, now_s)
    if fit is None or not fit.any():
        return np.zeros(len(times))
    return np.asarray(np.log(fit + QUESTION_FLOOR))


def option_fits(options: tuple[str, ...], times: Scores, now_s: float) -> Scores:
    """Return the log fit of each time with each option's temporal expression, shape (O, N)."""
    fits = [temporal_fit(option, times, now_s) for option in options]
    blank = np.zeros(len(times))
    return np.asarray(np.log(np.stack([blank if f is None else f for f in fits]) + OPTION_FLOOR))


# The vector signal: cosines of queries with the closest line of each cell, and with the cell.
#
# The vector of a cell is the mean direction of its lines and those of the cell before it, for
# context; later cells do not count (online rule).


def line_cosines(lines: LineSet, queries: Matrix) -> tuple[Floats, Floats]:
    """Return cosines of Q queries (Q, D) with every line (Q, M) and each cell's closest (Q, N)."""
    cosines = lines.cosines(queries)
    return cosines, np.asarray(lines.largest(cosines), dtype=np.float32)


def cell_cosines(lines: LineSet, queries: Matrix) -> Floats:
    """Return cosines of Q queries (Q, D) with the vector of every cell, shape (Q, N)."""
    if not lines.line_count:
        return np.zeros((len(queries), 0), dtype=np.float32)
    membership = csr_array(
        (np.ones(lines.line_count, dtype=np.float32), np.arange(lines.line_count), lines.bounds),
        shape=(lines.cell_count, lines.line_count),
    )
    sums = membership @ lines.arrays.vectors
    windows = sums.copy()
    later = np.flatnonzero(lines.follows)
    windows[later] += sums[later - 1]
    lengths = np.maximum(np.linalg.norm(windows, axis=1), 1e-9)
    return np.asarray(dot_products(queries, windows) / lengths, dtype=np.float32)


# The word signal: BM25 over cells and over windows around them.
#
# Okapi BM25 (Robertson and Zaragoza, 2009), counted in lines: the term frequency is the number of
# lines with a word, from the database's full text search; the document length is the number of
# lines in a window. Document frequencies are those of the view. Clips whose lines were not fetched
# are assumed to have the mean number of lines.

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
                if (word, half) not in self._score_cache:
                    self._score_cache[word, half] = self._score_word(word, half)
                total += self._score_cache[word, half]
        return total

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
        # BM25's length normalisation of the window around every place, (P,).
        if half not in self._norms:
            relative = _window_sums(self.lengths, half) / (2 * half + 1)
            self._norms[half] = np.asarray(K1 * (1 - B + B * relative))
        return np.asarray(weight * frequency / (frequency + self._norms[half]))

    @cached_property
    def _norms(self) -> dict[int, Scores]:
        return {}


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


# How well texts match words: BM25 (Robertson and Zaragoza, 2009), with the defaults of bm25s.
#
# Words are weighed by how rare they are among the given texts only, so that of a view as of a
# moment nothing later is known.


class WordScores:
    """Scores N texts by search terms."""

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self._count = len(words)
        self._ranking = BM25() if any(words) else None
        if self._ranking is not None:
            self._ranking.index(list(words), show_progress=False)

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the score of every text by search terms, (N,); 0 without one in common."""
        vocabulary = self._ranking.vocab_dict if self._ranking is not None else {}
        known = [word for word in words if word in vocabulary]
        if self._ranking is None or not known:
            return np.zeros(self._count, dtype=np.float32)
        return np.asarray(self._ranking.get_scores(known), dtype=np.float32)
