"""The plain way to answer, for comparison: one vector a clip, and cosines.

Clips are ranked by the cosine of the question with the clip's whole text; the option that is
closest to any clip is chosen. Nothing else is known: no words, no time, no people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evals.grid import Span
from models.ports import TextEmbedder
from store.database import Store
from store.queries.summaries import Summed, summed_clips

RETRIEVED = 10


@dataclass(frozen=True)
class Plain:
    """What the plain way answers: the place of an option, and spans, best first."""

    option: int
    retrieved: tuple[Span, ...]


@dataclass(frozen=True, eq=False)
class Baseline:
    """The clips of one video, in order, with the vector of each one's whole text."""

    clips: Summed
    text: TextEmbedder

    @classmethod
    def of(cls, store: Store, video: str, text: TextEmbedder) -> Baseline:
        """Take the vectors that the store keeps of every clip's lines, joined."""
        with store.begin() as session:
            return cls(summed_clips(session, video), text)

    def answer(self, question: str, options: Sequence[str], as_of_s: float) -> Plain:
        """Answer from the clips that have ended by ``as_of_s``."""
        seen = int((self.clips.spans_ms[:, 1] <= as_of_s * 1000).sum())
        if not seen:
            return Plain(0, ())
        cosines = self.text.embed([question, *options]) @ self.clips.vectors[:seen].T
        best = np.argsort(-cosines[0], kind="stable")[:RETRIEVED]
        spans = [(start / 1000, end / 1000) for start, end in self.clips.spans_ms[best].tolist()]
        return Plain(int(cosines[1:].max(axis=1).argmax()), tuple(spans))
