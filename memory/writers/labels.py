"""Labels and summaries taken from the lines of a segment: nothing is in them that is not there."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from domain.memories import PRESENCE_SOURCES
from domain.word_lists import load_words
from memory.patches import SUMMARY_SENTENCES, count_sentences
from memory.writers.port import WindowLine

PHRASES = 3
"""A label has at most this many phrases."""

PHRASE_WORDS = 3
"""A phrase has at most this many words."""

SHORT = 4
"""Lines with fewer words are not used in summaries where there are others."""

TELLING = 4
"""A line with this many telling words tells enough."""

_CHUNK = re.compile(r"[^.,;:!?/()\[\]\"“”…\n]+")
_WORD = re.compile(r"[^\W_][\w'’-]*")
_TAG = re.compile(r"<\w+>")


def content_words(text: str) -> list[str]:
    """The words of ``text`` in lower case that tell what it is about."""
    plain = _TAG.sub(" ", text).replace("’", "'")
    found = (word.strip("'-").removesuffix("'s") for word in _WORD.findall(plain.casefold()))
    return [word for word in found if len(word) > 1 and word not in load_words("stop")]


def phrases(text: str) -> Iterable[tuple[str, ...]]:
    """Runs of at most three content words, as they are written."""
    for chunk in _CHUNK.findall(_TAG.sub(" . ", text).replace("’", "'")):
        run: list[str] = []
        for word in _WORD.findall(chunk):
            if content_words(word) and not word[0].isdigit():
                run.append(word.removesuffix("'s"))
            else:
                yield from _windows(run)
                run = []
        yield from _windows(run)


def _windows(run: list[str]) -> Iterable[tuple[str, ...]]:
    for size in range(1, PHRASE_WORDS + 1):
        for start in range(len(run) - size + 1):
            yield tuple(run[start : start + size])


class Salience:
    """What sets a segment apart: the words it uses often and the other clips seldom (tf-idf)."""

    def __init__(self, lines: Sequence[WindowLine]) -> None:
        clips = {line.clip for line in lines}
        used = {(line.clip, word) for line in lines for word in content_words(line.text)}
        self._clips = max(1, len(clips))
        self._spread = Counter(word for _, word in used)

    def weight(self, word: str) -> float:
        """How telling a word is: the fewer clips use it the more."""
        return math.log1p(self._clips / max(1, self._spread[word]))

    def label(self, lines: Sequence[WindowLine], most_words: int) -> str:
        """At most three telling phrases; empty where there are no words."""
        shown = [line for line in lines if line.source not in PRESENCE_SOURCES]
        ranked = self._ranked(shown)
        taken: list[tuple[str, ...]] = []
        used: set[str] = set()
        for phrase in ranked:
            folded = {word.casefold() for word in phrase}
            room = most_words - sum(len(one) for one in taken)
            if len(phrase) <= room and not folded & used and len(taken) < PHRASES:
                taken.append(phrase)
                used |= folded
        text = ", ".join(" ".join(phrase) for phrase in taken)
        return text[:1].upper() + text[1:]

    def _ranked(self, lines: Sequence[WindowLine]) -> list[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        written: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
        for line in lines:
            for phrase in phrases(line.text):
                key = tuple(word.casefold() for word in phrase)
                counts[key] += 1
                written.setdefault(key, Counter())[phrase] += 1
        order = {key: place for place, key in enumerate(counts)}
        worth = {key: self._worth(key, counts) for key in counts}
        ranked = sorted(counts, key=lambda key: (-worth[key], order[key]))
        return [written[key].most_common(1)[0][0] for key in ranked]

    def _worth(self, key: tuple[str, ...], counts: Counter[tuple[str, ...]]) -> float:
        """A phrase counts as often as it occurs; a longer one must recur to beat its words."""
        mean = sum(self.weight(word) for word in key) / len(key)
        again = counts[key] if len(key) == 1 else (counts[key] - 0.5) * len(key) ** 0.5
        return round(mean * math.sqrt(again), 9)


def summary(lines: Sequence[WindowLine]) -> str:
    """Four to eight sentences of the segment's own lines: the first, and the most central.

    Args:
        lines: The segment's lines, in order.

    Returns:
        The chosen lines in order, each with who said it; empty where there are none.
    """
    told = _worth_telling(lines)
    if not told:
        return ""
    wanted = min(SUMMARY_SENTENCES, max(4, len(told) // 5))
    text = ""
    chosen: list[int] = []
    for place in _by_centrality(told):
        trial = sorted([*chosen, place])
        joined = " ".join(_sentence(told[one]) for one in trial)
        if len(trial) <= wanted and (not text or count_sentences(joined) <= SUMMARY_SENTENCES):
            chosen, text = trial, joined
    return text


def _worth_telling(lines: Sequence[WindowLine]) -> list[WindowLine]:
    once = list({line.told.casefold(): line for line in reversed(lines)}.values())[::-1]
    full = [
        one for one in once if one.source not in PRESENCE_SOURCES and len(one.text.split()) >= SHORT
    ]
    spoken = [one for one in once if one.source not in PRESENCE_SOURCES]
    return full or spoken or once


def _by_centrality(lines: Sequence[WindowLine]) -> list[int]:
    """The first line, then by likeness to the whole, less what is told already (MMR).

    Lines with few telling words count less: "I turn my head" is central to many a scene.
    """
    vectors = np.asarray([line.vector for line in lines], dtype=np.float64)
    centre = vectors.mean(axis=0)
    telling = [min(1.0, len(set(content_words(line.text))) / TELLING) for line in lines]
    central = vectors @ (centre / max(float(np.linalg.norm(centre)), 1e-9)) * telling
    order = [0]
    told = vectors @ vectors[0]
    while len(order) < min(len(lines), 3 * SUMMARY_SENTENCES):
        gain = np.round(central - 0.5 * told, 9)
        gain[order] = -np.inf
        order.append(int(np.argmax(gain)))
        told = np.maximum(told, vectors @ vectors[order[-1]])
    return order


def _sentence(line: WindowLine) -> str:
    text = line.told.strip().rstrip(",;:")
    return text if text[-1:] in '.!?…"”' else f"{text}."
