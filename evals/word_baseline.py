"""The baseline of words: clips ranked by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals.baseline import RETRIEVED, Plain
from retrieval.terms import terms
from retrieval.word_scores import WordScores
from store.database import Store
from store.queries.memories import ClipText, clip_texts

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

    def answer(self, question: str, options: Sequence[str], as_of_s: float) -> Plain:
        """Answer from the clips that have ended by ``as_of_s``.

        Chooses the option that has the best clip for the question and the option together. Words
        are weighed by how rare they are in those clips only: nothing later is known.
        """
        seen = sum(clip.end_ms <= as_of_s * 1000 for clip in self.clips)
        if not seen:
            return Plain(0, ())
        ranking = WordScores(self.words[:seen])
        scores = ranking.of(terms(question))
        order = np.argsort(-scores, kind="stable")[:RETRIEVED]
        best = [self.clips[n] for n in order if scores[n] > 0]
        option = np.argmax([ranking.of(terms(f"{question} {one}")).max() for one in options])
        return Plain(int(option), tuple((one.start_ms / 1000, one.end_ms / 1000) for one in best))
