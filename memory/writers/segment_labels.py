"""Extractive labels and summaries of segments: phrases and sentences of their own lines; pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
        # The phrases of lines, in order.
        written: dict[_Words, Counter[_Words]] = defaultdict(Counter)
        for line in content:
            for phrase in dict.fromkeys(phrases(line.text)):
                written[tuple(word.casefold() for word in phrase)][phrase] += 1
        found = list[_Phrase]()
        for key, forms in written.items():
            # One of several words has to recur to be a term.
            count = forms.total()
            rare = sum(self.weight(word) for word in key) / len(key)
            term = 1.0 if count > 1 or len(key) == 1 else ONCE
            score = round(count * math.sqrt(rare * len(key)) * term, 9)
            # How a phrase is mostly written, rather not in capitals, as slides have them.
            form = max(forms, key=lambda one: (not " ".join(one).isupper(), forms[one]))
            found.append(_Phrase(key, " ".join(form), count, score))
        chosen: list[_Phrase] = []
        for ranked in sorted(found, key=lambda one: -one.score):
            if len(chosen) == MAX_PHRASES:
                break
            left = max_words - sum(len(one.key) for one in chosen)
            if _fits(ranked, chosen, left):
                terms = _terms_with(ranked, found)
                fitting = [term for term in terms if _fits(term, chosen, left)]
                chosen.append((fitting or [ranked])[0])
        text = ", ".join(one.written for one in chosen)
        return text[:1].upper() + text[1:]


def _terms_with(phrase: _Phrase, others: Iterable[_Phrase]) -> list[_Phrase]:
    """Return the terms that a phrase is often a part of, best first: "dark energy" of "energy"."""
    least, size = max(2.0, TERM_SHARE * phrase.lines), len(phrase.key)
    longer = [
        other
        for other in others
        if len(other.key) > size
        and other.lines >= least
        and any(
            other.key[start : start + size] == phrase.key
            for start in range(len(other.key) - size + 1)
        )
    ]
    return sorted(longer, key=lambda one: -one.score)


def _fits(one: _Phrase, chosen: Sequence[_Phrase], most_words: int) -> bool:
    """Check whether a phrase is short enough and has no word of the chosen ones, nor a plural."""
    words = [word for other in chosen for word in other.key]
    return len(one.key) <= most_words and not any(_alike(a, b) for a in one.key for b in words)


def _alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= PLURAL_LETTERS and longer.startswith(shorter))


def summarise(lines: Sequence[WindowLine]) -> str:
    """Return four to eight sentences of the segment's own lines: the first, and the most central.

    Args:
        lines: The segment's lines, in order.

    Returns:
        The chosen lines in order, each with who said it; empty where there are none.
    """
    unique = list({line.attributed_text.casefold(): line for line in reversed(lines)}.values())[
        ::-1
    ]
    long_enough = [line for line in unique if is_telling(line)]
    content = [line for line in unique if line.source not in BACKGROUND_SOURCES]
    lines_to_use = long_enough or content or unique
    if not lines_to_use:
        return ""
    max_lines = summary_size(len(lines_to_use))
    text = ""
    chosen: list[int] = []
    # Order lines by maximal marginal relevance: the first line, then the most central new ones.
    # Lines with few telling words count less: "I turn my head" is central to many a scene.
    vectors = np.asarray([line.vector for line in lines_to_use], dtype=np.float64)
    centre = vectors.mean(axis=0)
    content_weights = [
        min(1.0, len(set(content_words(line.text))) / MIN_CONTENT_WORDS) for line in lines_to_use
    ]
    centrality = vectors @ (centre / max(float(np.linalg.norm(centre)), 1e-9)) * content_weights
    order = [0]
    similarity = vectors @ vectors[0]
    while len(order) < min(len(lines_to_use), 3 * MAX_SUMMARY_SENTENCES):
        gain = np.round(centrality - 0.5 * similarity, 9)
        gain[order] = -np.inf
        order.append(int(np.argmax(gain)))
        similarity = np.maximum(similarity, vectors @ vectors[order[-1]])
    for index in order:
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


def _sentence(line: WindowLine) -> str:
    text = line.attributed_text.strip().rstrip(",;:")
    return text if text[-1:] in '.!?…"”' else f"{text}."


# Splits lines into topics where their vectors change (TextTiling, Hearst 1997); pure.

Matrix = NDArray[np.float64]

BLOCK_LINES = 8
"""Lines compared on each side of a possible cut."""

EDGE_SHARE = 0.25
"""A cut within this share of a clip's lines from the clip's start or end is moved there."""


def depth_scores(vectors: Matrix) -> Matrix:
    """Return how far the similarity of neighbouring blocks dips at each gap.

    Args:
        vectors: (N, D) unit rows, in order.

    Returns:
        (N - 1,); entry i is the gap before line i + 1. The depth is what the likeness lacks to
        the nearest peak on the left plus what it lacks to the one on the right.
    """
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0)])
    cuts = np.arange(1, len(vectors))
    left = sums[cuts] - sums[np.maximum(cuts - BLOCK_LINES, 0)]
    right = sums[np.minimum(cuts + BLOCK_LINES, len(vectors))] - sums[cuts]
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    similarity = (left * right).sum(axis=1) / np.where(norms > 0, norms, 1.0)
    peaks = _peaks_to_left(similarity) + _peaks_to_left(similarity[::-1])[::-1]
    return np.asarray(np.round(peaks - 2 * similarity, 9)) if len(peaks) else np.zeros(0)


def _peaks_to_left(similarity: Matrix) -> Matrix:
    """Return the peak that is reached from each gap by going up to the left, shape (N - 1,)."""
    peaks = similarity.copy()
    for gap in range(1, len(peaks)):
        if similarity[gap - 1] >= similarity[gap]:
            peaks[gap] = peaks[gap - 1]
    return peaks


@dataclass(frozen=True)
class CutLimits:
    """The fewest and most cuts, and the fewest lines between two cuts."""

    minimum: int
    maximum: int
    min_lines: int


def choose_cuts(depth: Matrix, forced: Sequence[int], limits: CutLimits) -> list[int]:
    """Choose where to cut, the deepest gaps first.

    Gaps are deep enough from the mean depth plus half a standard deviation; shallower ones are cut
    only until there are ``limits.minimum`` cuts.

    Args:
        depth: As returned by ``depth_scores``.
        forced: Line numbers before which there is a cut in any case, most important first.
        limits: Limits on the cuts.

    Returns:
        Line numbers (1 to N - 1) before which a topic begins, in order.
    """
    chosen = list(forced)[: limits.maximum]
    threshold = float(depth.mean() + depth.std() / 2) if len(depth) else 0.0
    order = sorted(range(len(depth)), key=lambda gap: (-depth[gap], gap))
    for gap in order:
        enough = len(chosen) >= limits.minimum and depth[gap] < threshold
        if len(chosen) >= limits.maximum or enough or depth[gap] <= 0:
            break
        ends = (0, len(depth) + 1, *chosen)
        if all(abs(gap + 1 - end) >= limits.min_lines for end in ends):
            chosen.append(gap + 1)
    return sorted(chosen)


def split_at_cuts(
    line_clips: Sequence[int], clips: Sequence[int], cuts: Sequence[int]
) -> list[list[int]]:
    """Return the clips of each topic.

    A clip with a cut inside belongs to both topics; a cut close to a clip's start or end is moved
    there. Topics without a clip of their own are merged with the one before.

    Args:
        line_clips: The clip of every line, in order.
        clips: All clips, in order; those without lines belong to the topic they lie in.
        cuts: Cuts, as of ``choose_cuts``.

    Returns:
        Runs of consecutive clips that cover all of ``clips``; neighbours share at most one.
    """
    runs: list[list[int]] = []
    start = 0
    for cut in cuts:
        clip = line_clips[cut]
        position = clips.index(clip)
        first_line = line_clips.index(clip)
        share = (cut - first_line) / line_clips.count(clip)
        if share <= EDGE_SHARE:
            last, first = position - 1, position
        else:
            last, first = (
                (position, position + 1) if share >= 1 - EDGE_SHARE else (position, position)
            )
        if last >= start and first > start and first < len(clips):
            runs.append(list(clips[start : last + 1]))
            start = first
    runs.append(list(clips[start:]))
    remaining: list[list[int]] = []
    for run in runs:
        if remaining and set(run) <= set(remaining[-1]):
            continue
        if remaining and set(remaining[-1]) <= set(run):
            remaining.pop()
        remaining.append(run)
    return remaining
