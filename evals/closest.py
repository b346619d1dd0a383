"""The plain way to choose among options: the one closest to any line of the memory.

Each option is embedded together with the question and compared by cosine with every line. It uses
no words, no time, no people and no neighbours.
"""

from __future__ import annotations

from string import ascii_uppercase

from domain.evaluation import BASELINE_ARM, Verdict
from evals.dataset import EvalQuestion
from evals.judges.options import ANSWERS_WITHHELD
from models.ports import TextEmbedder
from retrieval.index_cache import IndexCache
from retrieval.view_index import panorama
from store.database import Store
from store.queries.clips import memory_view


class Closest:
    """Chooses options from the memory of a store. Thread-safe.

    Args:
        store: the store of the memory.
        text: the model that the memory was embedded with.
        clip_ms: the length of clips.
    """

    def __init__(self, store: Store, text: TextEmbedder, clip_ms: int) -> None:
        self._store, self._text = store, text
        self._cache = IndexCache(store, clip_ms)

    def option(self, question: EvalQuestion, video: str) -> str:
        """Return the letter of the closest option, as of the question's time; A without memory."""
        with self._store.begin() as session:
            view = memory_view(session, [video], question.as_of_ms)
        index = panorama(view, self._cache.look(view.scopes).indexes)
        if not index.line_count:
            return "A"
        queries = [f"{question.question} {option}" for option in question.options]
        lines, _ = index.cosines(self._text.embed(queries))
        return ascii_uppercase[int(lines.max(axis=1).argmax())]

    def verdict(self, question: EvalQuestion, video: str) -> Verdict:
        """Judge that option; unjudged if the data set has no answer."""
        if not question.answer:
            return Verdict(right=None, judge=BASELINE_ARM, why=ANSWERS_WITHHELD)
        chosen = self.option(question, video)
        why = f"chose {chosen}, right is {question.answer}"
        return Verdict(right=chosen == question.answer, judge=BASELINE_ARM, why=why)
