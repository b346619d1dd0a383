"""What a search ranks before it chooses: the lines of a whole view, and a question's options."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.asking import Aim, Mode, Question
from domain.memories import MemoryView
from domain.moments import Retrieval
from retrieval.relevance import Relevance
from retrieval.retrievers import Retrievers

TOP_CELLS = 50


def rank(search: Retrievers, view: MemoryView, question: Question, limit: int = 10) -> Retrieval:
    """The best lines of a view, as a search by rules adds them to what its mode finds."""
    context = search._preparation.context(view, question.text, question.options)
    nothing = Retrieval(mode=Mode.VIDEO, query=question.text, nothing_close=True)
    return search._with_best_lines(nothing, context, Aim(text=question.text, moments=limit))


def shares(relevance: Relevance) -> NDArray[np.float64]:
    """The share of each option in what is supported in the best clips, (O,)."""
    best = np.sort(relevance.support, axis=1)[:, -TOP_CELLS:]
    weights = np.exp(best - best.max()).mean(axis=1)
    return np.asarray(weights / weights.sum())
