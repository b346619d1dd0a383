"""A look over the whole view, written down, so that it can be served again."""

from __future__ import annotations

from domain.asking import Question
from domain.ranking import Ranking
from domain.trajectory import Ranked
from domain.view import MemoryView
from nodes.reasoners.local import Ranker
from nodes.recorder import Recorder


class RecordedRanker:
    """Ranks by ``ranker`` what the recorder's past does not hold."""

    def __init__(self, ranker: Ranker, recorder: Recorder) -> None:
        self._ranker, self._recorder = ranker, recorder

    def rank(self, view: MemoryView, question: Question, limit: int = 10) -> Ranking:
        """The moments, best first."""
        ranking = self._recorder.past.ranked(question.text)
        if ranking is None:
            ranking = self._ranker.rank(view, question, limit)
        told = Ranked(round=self._recorder.round, question=question.text, ranking=ranking)
        self._recorder.add(told)
        return ranking
