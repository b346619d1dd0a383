"""Extractive labels and summaries of segments: phrases and sentences of their own lines; pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
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

MIN_LINE_WORDS = 4
"""Lines with fewer words are not used in summaries where there are others."""

MIN_CONTENT_WORDS = 4
"""Lines with at least this many distinct content words have full weight in summaries."""

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
                run.append(word.removesuffix("'s"))
            else:
                yield from _ngrams(run)
                run = []
        yield from _ngrams(run)


def _ngrams(run: list[str]) -> Iterable[tuple[str, ...]]:
    for size in range(1, MAX_PHRASE_WORDS + 1):
        for start in range(len(run) - size + 1):
            yield tuple(run[start : start + size])


class Salience:
    """Ranks words and phrases by tf-idf over the clips of a window."""

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
        ranked = self._rank_phrases(content)
        chosen: list[tuple[str, ...]] = []
        used: set[str] = set()
        for phrase in ranked:
            folded = {word.casefold() for word in phrase}
            words_left = max_words - sum(len(chosen_phrase) for chosen_phrase in chosen)
            if len(phrase) <= words_left and not folded & used and len(chosen) < MAX_PHRASES:
                chosen.append(phrase)
                used |= folded
        text = ", ".join(" ".join(phrase) for phrase in chosen)
        return text[:1].upper() + text[1:]

    def _rank_phrases(self, lines: Sequence[WindowLine]) -> list[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        written: dict[tuple[str, ...], Counter[tuple[str, ...]]] = defaultdict(Counter)
        for line in lines:
            for phrase in phrases(line.text):
                key = tuple(word.casefold() for word in phrase)
                counts[key] += 1
                written[key][phrase] += 1
        order = {key: position for position, key in enumerate(counts)}
        scores = {key: self._score(key, counts) for key in counts}
        ranked = sorted(counts, key=lambda key: (-scores[key], order[key]))
        return [written[key].most_common(1)[0][0] for key in ranked]

    def _score(self, key: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> float:
        """Score a phrase by idf and frequency; a longer one must recur to beat its single words."""
        mean = sum(self.weight(word) for word in key) / len(key)
        again = counts[key] if len(key) == 1 else (counts[key] - 0.5) * len(key) ** 0.5
        return round(mean * math.sqrt(again), 9)


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
