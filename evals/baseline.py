"""The baseline: one vector a clip, and cosines.

Clips are ranked by the cosine of the question with the clip's whole text; the option closest to any
clip is chosen. It uses no words, no time and no people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from domain.evaluation import BASELINE_ARM, Verdict
from domain.time import TimeSpan
from evals.dataset import EvalQuestion
from evals.judging import ANSWERS_WITHHELD
from memory.import_captions import Progress
from models.ports import TextEmbedder, embed_queries
from retrieval.signals import WordScores
from retrieval.terms import terms
from store.database import Store
from store.queries.candidates import near_clips
from store.queries.clips import memory_view
from store.queries.memories import ClipText, clip_texts

RETRIEVED = 10
EMBED_BATCH = 32


@dataclass(frozen=True)
class Plain:
    """A baseline's answer: the letter of an option, and spans, best first."""

    option: str
    retrieved: tuple[TimeSpan, ...] = ()


def _ended(clips: Sequence[ClipText], as_of_ms: int | None) -> int:
    """Count the clips that have ended by then; None: all."""
    return sum(as_of_ms is None or clip.end_ms <= as_of_ms for clip in clips)


def _spans(clips: Sequence[ClipText], best: Iterable[int]) -> tuple[TimeSpan, ...]:
    return tuple(TimeSpan.of(clips[n].start_ms, clips[n].end_ms) for n in best)


@dataclass(frozen=True, eq=False)
class Baseline:
    """The clips of one video, in order, and the unit vector of each one's whole text, (N, D)."""

    clips: Sequence[ClipText]
    vectors: NDArray[np.float32]
    text: TextEmbedder

    @classmethod
    def of(
        cls, store: Store, video: str, text: TextEmbedder, progress: Progress | None = None
    ) -> Baseline:
        """Embed the whole text of every clip, as far as the model reads it."""
        with store.begin() as session:
            clips = clip_texts(session, video)
        vectors: list[NDArray[np.float32]] = [np.zeros((0, text.dimensions), dtype=np.float32)]
        for first in range(0, len(clips), EMBED_BATCH):
            batch = clips[first : first + EMBED_BATCH]
            vectors.append(text.embed([clip.text for clip in batch]))
            if progress:
                progress(first + len(batch), len(clips))
        return cls(clips, np.concatenate(vectors), text)

    def answer(self, question: str, options: Sequence[str], as_of_ms: int | None) -> Plain:
        """Answer from the clips that have ended by ``as_of_ms``; None: from all."""
        seen = _ended(self.clips, as_of_ms)
        if not seen:
            return Plain("A")
        cosines = embed_queries(self.text, [question, *options]) @ self.vectors[:seen].T
        best = np.argsort(-cosines[0], kind="stable")[:RETRIEVED]
        option = int(cosines[1:].max(axis=1).argmax())
        return Plain(ascii_uppercase[option], _spans(self.clips, best))


class Closest:
    """Chooses options from the memory of a store. Thread-safe.

    Args:
        text: the model that the memory was embedded with.
    """

    def __init__(self, store: Store, text: TextEmbedder) -> None:
        self._store, self._text = store, text

    def option(self, question: EvalQuestion, video: str) -> str:
        """Return the letter of the closest option, as of the question's time; A without memory."""
        queries = [f"{question.question} {option}" for option in question.options]
        vectors = embed_queries(self._text, queries)
        with self._store.begin() as session:
            view = memory_view(session, [video], question.as_of_ms)
            found = near_clips(session, view.scopes, vectors, 1)
        if not found:
            return "A"
        return ascii_uppercase[min(found, key=lambda one: (one.distance, one.query)).query]

    def verdict(self, question: EvalQuestion, video: str) -> Verdict:
        """Judge that option; unjudged if the data set has no answer."""
        if not question.answer:
            return Verdict(right=None, judge=BASELINE_ARM, why=ANSWERS_WITHHELD)
        chosen = self.option(question, video)
        why = f"chose {chosen}, right is {question.answer}"
        return Verdict(right=chosen == question.answer, judge=BASELINE_ARM, why=why)


# The baseline of words: clips ranked by BM25.

WORDS = "BM25 of words"


@dataclass(frozen=True)
class WordBaseline:
    """The clips of one video, in order, and the search terms of each."""

    clips: Sequence[ClipText]
    words: Sequence[list[str]]

    @classmethod
    def of(cls, store: Store, video: str) -> WordBaseline:
        """Read the words of every clip."""
        with store.begin() as session:
            clips = clip_texts(session, video)
        return cls(clips, [terms(clip.text) for clip in clips])

    def answer(self, question: str, options: Sequence[str], as_of_ms: int | None) -> Plain:
        """Answer from the clips that have ended by ``as_of_ms``; None: from all.

        Chooses the option that has the best clip for the question and the option together.
        """
        seen = _ended(self.clips, as_of_ms)
        if not seen:
            return Plain("A")
        # Words are weighed by how rare they are in these clips only: nothing later is known.
        ranking = WordScores(self.words[:seen])
        scores = ranking.of(terms(question))
        order = np.argsort(-scores, kind="stable")[:RETRIEVED]
        best = (n for n in order if scores[n] > 0)
        option = np.argmax([ranking.of(terms(f"{question} {one}")).max() for one in options])
        return Plain(ascii_uppercase[int(option)], _spans(self.clips, best))
