"""Extractive labels and summaries of segments: phrases and sentences of their own lines; pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from domain.memories import BACKGROUND_SOURCES, MemoryDraft
from domain.word_lists import load_words
from memory.patches import MAX_SUMMARY_SENTENCES, count_sentences
from memory.writers.port import WindowLine

MAX_PHRASES = 3
"""A label has at most this many phrases."""

MAX_PHRASE_WORDS = 3
"""A phrase has at most this many words."""

ONCE = 0.6
"""How much a phrase of several words counts that only one line has."""

TERM_SHARE = 0.3
"""A longer phrase in so many of the lines with a shorter one is named in its place."""

PLURAL_LETTERS = 3
"""A word that begins with another of so many letters is taken for the same, as "laws" for "law"."""

MIN_LINE_WORDS = 4
"""Lines with fewer words are not used in summaries where there are others."""

MIN_CONTENT_WORDS = 4
"""Lines with at least this many distinct content words have full weight in summaries."""

_Words = tuple[str, ...]

_CHUNK = re.compile(r"[^.,;:!?/()\[\]\"“”…\n]+")
_WORD = re.compile(r"[^\W_][\w'’-]*")
_TAG = re.compile(r"<\w+>")


def content_words(text: str) -> list[str]:
    """Return the content words of ``text`` in lower case: neither stop words nor single letters."""
    untagged = _TAG.sub(" ", text).replace("’", "'")
    words = (word.strip("'-").removesuffix("'s") for word in _WORD.findall(untagged.casefold()))
    stop_words = load_words("stop")
    return [word for word in words if len(word) > 1 and word not in stop_words]


@lru_cache(1 << 14)
def _is_content(word: str) -> bool:
    return bool(content_words(word)) and not word[0].isdigit()


def phrases(text: str) -> Iterable[tuple[str, ...]]:
    """Yield runs of at most three content words, in their original case."""
    for chunk in _CHUNK.findall(_TAG.sub(" . ", text).replace("’", "'")):
        run: list[str] = []
        for word in _WORD.findall(chunk):
            if _is_content(word):
                run.append(word.strip("'-").removesuffix("'s"))
            else:
                yield from _ngrams(run)
                run = []
        yield from _ngrams(run)


def _ngrams(run: list[str]) -> Iterable[tuple[str, ...]]:
    for size in range(1, MAX_PHRASE_WORDS + 1):
        for start in range(len(run) - size + 1):
            yield tuple(run[start : start + size])


@dataclass(frozen=True)
class _Phrase:
    """A phrase of a part: its words in lower case, as written, in how many lines, and its score."""

    key: _Words
    written: str
    lines: int
    score: float


class Salience:
    """Names parts of a window by the phrases that recur in them and are rare in its clips."""

    def __init__(self, lines: Sequence[WindowLine]) -> None:
        clips = {line.clip for line in lines}
        used = {(line.clip, word) for line in lines for word in content_words(line.text)}
        self._clips = max(1, len(clips))
        self._clip_counts = Counter(word for _, word in used)

    def weight(self, word: str) -> float:
        """Return the weight of a word: the fewer clips have it, the higher."""
        return math.log1p(self._clips / max(1, self._clip_counts[word]))

    def label(self, lines: Sequence[WindowLine], max_words: int) -> str:
        """Return a label of at most three phrases; empty if there are no content words."""
        content = [line for line in lines if line.source not in BACKGROUND_SOURCES]
        found = self._phrases(content)
        chosen: list[_Phrase] = []
        for ranked in sorted(found.values(), key=lambda one: -one.score):
            if len(chosen) == MAX_PHRASES:
                break
            left = max_words - sum(len(one.key) for one in chosen)
            if _fits(ranked, chosen, left):
                terms = _terms_with(ranked, found.values())
                fitting = [term for term in terms if _fits(term, chosen, left)]
                chosen.append((fitting or [ranked])[0])
        text = ", ".join(one.written for one in chosen)
        return text[:1].upper() + text[1:]

    def _phrases(self, lines: Sequence[WindowLine]) -> dict[_Words, _Phrase]:
        """Return the phrases of lines, in order."""
        written: dict[_Words, Counter[_Words]] = defaultdict(Counter)
        for line in lines:
            for phrase in dict.fromkeys(phrases(line.text)):
                written[tuple(word.casefold() for word in phrase)][phrase] += 1
        return {key: self._phrase(key, forms) for key, forms in written.items()}

    def _phrase(self, key: _Words, forms: Counter[_Words]) -> _Phrase:
        """Return a phrase with its score; one of several words has to recur to be a term."""
        lines = forms.total()
        rare = sum(self.weight(word) for word in key) / len(key)
        term = 1.0 if lines > 1 or len(key) == 1 else ONCE
        score = round(lines * math.sqrt(rare * len(key)) * term, 9)
        return _Phrase(key, " ".join(_common_form(forms)), lines, score)


def _terms_with(phrase: _Phrase, others: Iterable[_Phrase]) -> list[_Phrase]:
    """Return the terms that a phrase is often a part of, best first: "dark energy" of "energy"."""
    least = max(2.0, TERM_SHARE * phrase.lines)
    longer = [
        other
        for other in others
        if len(other.key) > len(phrase.key) and other.lines >= least and _holds(other, phrase)
    ]
    return sorted(longer, key=lambda one: -one.score)


def _holds(longer: _Phrase, shorter: _Phrase) -> bool:
    size = len(shorter.key)
    starts = range(len(longer.key) - size + 1)
    return any(longer.key[start : start + size] == shorter.key for start in starts)


def _fits(one: _Phrase, chosen: Sequence[_Phrase], most_words: int) -> bool:
    """Check whether a phrase is short enough and has no word of the chosen ones, nor a plural."""
    words = [word for other in chosen for word in other.key]
    return len(one.key) <= most_words and not any(_alike(a, b) for a in one.key for b in words)


def _alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= PLURAL_LETTERS and longer.startswith(shorter))


def _common_form(forms: Counter[_Words]) -> _Words:
    """Return how a phrase is mostly written, rather not in capitals, as slides have them."""
    return max(forms, key=lambda form: (not " ".join(form).isupper(), forms[form]))


def summarise(lines: Sequence[WindowLine]) -> str:
    """Return four to eight sentences of the segment's own lines: the first, and the most central.

    Args:
        lines: The segment's lines, in order.

    Returns:
        The chosen lines in order, each with who said it; empty where there are none.
    """
    lines_to_use = _summary_lines(lines)
    if not lines_to_use:
        return ""
    max_lines = summary_size(len(lines_to_use))
    text = ""
    chosen: list[int] = []
    for index in _rank_by_centrality(lines_to_use):
        trial = sorted([*chosen, index])
        joined = " ".join(_sentence(lines_to_use[position]) for position in trial)
        if len(trial) <= max_lines and (
            not text or count_sentences(joined) <= MAX_SUMMARY_SENTENCES
        ):
            chosen, text = trial, joined
    return text


def is_telling(line: WindowLine | MemoryDraft) -> bool:
    """Check whether a line is used in summaries where there are others that are not."""
    return line.source not in BACKGROUND_SOURCES and len(line.text.split()) >= MIN_LINE_WORDS


def summary_size(lines: int) -> int:
    """Return the most lines of a summary of so many lines."""
    return min(MAX_SUMMARY_SENTENCES, max(4, lines // 5))


def _summary_lines(lines: Sequence[WindowLine]) -> list[WindowLine]:
    unique = list({line.attributed_text.casefold(): line for line in reversed(lines)}.values())[
        ::-1
    ]
    long_enough = [line for line in unique if is_telling(line)]
    content = [line for line in unique if line.source not in BACKGROUND_SOURCES]
    return long_enough or content or unique


def _rank_by_centrality(lines: Sequence[WindowLine]) -> list[int]:
    """Order lines by maximal marginal relevance: the first line, then the most central new ones.

    Lines with few telling words count less: "I turn my head" is central to many a scene.
    """
    vectors = np.asarray([line.vector for line in lines], dtype=np.float64)
    centre = vectors.mean(axis=0)
    content_weights = [
        min(1.0, len(set(content_words(line.text))) / MIN_CONTENT_WORDS) for line in lines
    ]
    centrality = vectors @ (centre / max(float(np.linalg.norm(centre)), 1e-9)) * content_weights
    order = [0]
    similarity = vectors @ vectors[0]
    while len(order) < min(len(lines), 3 * MAX_SUMMARY_SENTENCES):
        gain = np.round(centrality - 0.5 * similarity, 9)
        gain[order] = -np.inf
        order.append(int(np.argmax(gain)))
        similarity = np.maximum(similarity, vectors @ vectors[order[-1]])
    return order


def _sentence(line: WindowLine) -> str:
    text = line.attributed_text.strip().rstrip(",;:")
    return text if text[-1:] in '.!?…"”' else f"{text}."
