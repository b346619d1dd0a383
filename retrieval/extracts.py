"""Summaries made of sentences of a text, chosen for the rare words that they cover.

Rarity is counted over what was seen by then only, so that a summary is the same whether it is
written while watching or later. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.wording import split_sentences
from retrieval.terms import terms

BREAK = "\n"
"""Between the sentences of a local caption, so that they can be told apart again."""

FEW_TERMS = 4
"""Sentences with fewer terms have no advantage by being short."""


@dataclass
class DocumentCounts:
    """In how many of the finest captions seen so far each term stands."""

    documents: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, caption: str) -> None:
        """Count one more caption."""
        self.documents += 1
        self.counts.update(set(terms(caption)))

    def rarity(self, term: str) -> float:
        """Return the weight of a term: the fewer captions have it, the higher, above 0."""
        return math.log1p(self.documents / max(1, self.counts[term]))


def caption_sentences(caption: str) -> list[str]:
    """Return the sentences of a caption: of a local one its lines, else by full stops."""
    parts = [part for part in caption.split(BREAK) if part.strip()]
    if len(parts) > 1:
        return [part.strip() for part in parts]
    return [sentence.strip() for sentence in split_sentences(caption)]


def coarser_caption(finer: Sequence[str], counts: DocumentCounts, most: int) -> str:
    """Return the sentences that cover most of the rare words of finer captions.

    Args:
        finer: captions in order of time.
        counts: of the finest captions up to the window's end.

    Returns:
        Sentences in their order; empty where there are none.
    """
    sentences = list(dict.fromkeys(s for caption in finer for s in caption_sentences(caption)))
    words = [frozenset(terms(sentence)) for sentence in sentences]
    within = Counter(term for caption in finer for term in set(terms(caption)))
    chosen = _cover(
        words, {term: counts.rarity(term) * count for term, count in within.items()}, most
    )
    return BREAK.join(sentences[number] for number in sorted(chosen))


def _cover(words: Sequence[frozenset[str]], weights: Mapping[str, float], most: int) -> set[int]:
    """Choose sets of words, each time the one that adds most, until nothing is added."""
    chosen: set[int] = set()
    covered: frozenset[str] = frozenset()
    while len(chosen) < most:
        gains = list(_gains(words, weights, covered))
        best = max(range(len(gains)), key=lambda number: (gains[number], -number), default=0)
        if not gains or gains[best] <= 0:
            break
        chosen.add(best)
        covered |= words[best]
    return chosen


def _gains(
    words: Sequence[frozenset[str]], weights: Mapping[str, float], covered: frozenset[str]
) -> Iterator[float]:
    """Yield what each set would add, over the root of its size: long ones add more by chance."""
    for terms_of_sentence in words:
        # Summed in order: floats depend on it, and the order of sets differs between processes.
        added = sum(weights[term] for term in sorted(terms_of_sentence - covered))
        yield round(added / math.sqrt(max(FEW_TERMS, len(terms_of_sentence))), 9)
