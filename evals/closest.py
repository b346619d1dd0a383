"""The plain way to choose among options: the one that is closest to any line of the memory.

Each option is asked together with the question, and compared by cosine with every line, one by one.
Nothing else is known: no words, no time, no people, no neighbours.
"""

from __future__ import annotations

from string import ascii_uppercase

from domain.evaluation import PLAIN, Verdict
from evals.dataset import EvalQuestion
from evals.judges.options import KEPT_BACK
from models.ports import TextEmbedder
from retrieval.index_cache import IndexCache
from retrieval.view_index import panorama
from store.database import Store
from store.queries.clips import view_of


class Closest:
    """Answers from the memory of a store. Thread-safe.

    Args:
        store: whose memory is compared with.
        text: the model that the memory was embedded with.
        clip_ms: how long clips are.
    """

    def __init__(self, store: Store, text: TextEmbedder, clip_ms: int) -> None:
        self._store, self._text = store, text
        self._cache = IndexCache(store, clip_ms)

    def option(self, question: EvalQuestion, video: str) -> str:
        """The letter of the closest option, as of the question's time; A where nothing is there."""
        with self._store.begin() as session:
            view = view_of(session, [video], question.as_of_ms)
        seen = panorama(view, self._cache.look(view.scopes).indexes)
        if not seen.line_count:
            return "A"
        asked = [f"{question.question} {option}" for option in question.options]
        lines, _ = seen.cosines(self._text.embed(asked))
        return ascii_uppercase[int(lines.max(axis=1).argmax())]

    def verdict(self, question: EvalQuestion, video: str) -> Verdict:
        """Whether that is the right one; unjudged where the data set has no answer."""
        if not question.answer:
            return Verdict(right=None, judge=PLAIN, why=KEPT_BACK)
        chosen = self.option(question, video)
        why = f"chose {chosen}, right is {question.answer}"
        return Verdict(right=chosen == question.answer, judge=PLAIN, why=why)
