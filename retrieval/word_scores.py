"""How well texts match words: BM25 (Robertson and Zaragoza, 2009), as Lucene has it.

Words are weighed by how rare they are among the given texts only, so that of a view as of a moment
nothing later is known. All texts are indexed once; to choose those of a view costs no new index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.terms import terms

K1, B = 1.5, 0.75
"""How soon a repeated word counts little more, and how much longer texts count less."""

Numbers = NDArray[np.intp]


class WordIndex:
    """N texts by their words.

    Args:
        words: the search terms of each text.
    """

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self.lengths = np.array([len(one) for one in words], np.int64)
        self._numbers: dict[str, int] = {}
        known = self._numbers
        said = (known.setdefault(term, len(known)) for one in words for term in one)
        of_term = np.fromiter(said, np.int64, int(self.lengths.sum()))
        of_text = np.repeat(np.arange(len(words)), self.lengths)
        pairs, self._counts = np.unique(of_term * max(1, len(words)) + of_text, return_counts=True)
        term_of_pair, self._texts = np.divmod(pairs, max(1, len(words)))
        self._first = np.searchsorted(term_of_pair, np.arange(len(known) + 1))

    def having(self, term: str) -> tuple[Numbers, NDArray[np.int64]]:
        """Return the numbers of the texts that have a term, and how often each has it."""
        number = self._numbers.get(term)
        if number is None:
            return np.zeros(0, np.intp), np.zeros(0, np.int64)
        place = slice(self._first[number], self._first[number + 1])
        return self._texts[place], self._counts[place]

    def within(self, texts: Numbers) -> WordScores:
        """Return what scores these of the texts, as if there were no others."""
        return WordScores(self, texts)


class WordScores:
    """Scores V texts of an index by the words of a query.

    Args:
        index: of all texts.
        texts: (V,), the numbers of those to score, each once.
    """

    def __init__(self, index: WordIndex, texts: Numbers) -> None:
        self._index, self._count = index, len(texts)
        self._places = np.full(len(index.lengths), -1, np.intp)
        self._places[texts] = np.arange(len(texts))
        lengths = index.lengths[texts]
        mean = lengths.mean() if lengths.any() else 1.0
        self._norms = K1 * ((1 - B) + B * lengths / mean)

    @classmethod
    def of_all(cls, words: Sequence[Sequence[str]]) -> WordScores:
        """Return what scores texts by the search terms of each."""
        return WordIndex(words).within(np.arange(len(words)))

    def of(self, query: str) -> NDArray[np.float32]:
        """Return the score of every text, (V,); 0 without a word in common."""
        scores = np.zeros(self._count, dtype=np.float32)
        for term in terms(query):
            texts, counts = self._index.having(term)
            places = self._places[texts]
            places, counts = places[places >= 0], counts[places >= 0]
            rarity = np.float32(
                math.log(1 + (self._count - len(places) + 0.5) / (len(places) + 0.5))
            )
            found = rarity * (counts / (self._norms[places] + counts))
            scores[places] += found.astype(np.float32)
        return scores
