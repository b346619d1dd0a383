"""Answers for programs and notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from domain.asking import Answer, ConfidenceLevel, Question, level_of_confidence
from domain.words import plain_line
from graphs.ask_result import AskResult
from homer_video.moments import FoundMoments, table_of
from library.answers import answer_line, confidence_line
from library.moments import moments_of

if TYPE_CHECKING:
    from store.database import Store


class VideoAnswer:
    """An answer, the moments that it rests on, and what it took.

    ``answer`` has everything that is on record about it; ``tokens`` counts both ways, over all
    model calls.
    """

    def __init__(self, result: AskResult, question: Question, store: Store) -> None:
        self.answer: Answer = result.answer
        self.question = question
        self.trajectory_id = result.trajectory_id
        self.rounds, self.tokens, self.seconds = result.rounds, result.tokens, result.seconds
        self.citations = FoundMoments(moments_of(store, result.answer.citations), store)

    @property
    def text(self) -> str:
        """The answer as a person reads it."""
        return answer_line(self.answer, self.question)

    @property
    def option(self) -> str | None:
        """The letter of the option chosen; None where the question had none."""
        return self.answer.option

    @property
    def confidence(self) -> float:
        """The calibrated confidence, in [0, 0.95]."""
        return self.answer.confidence

    @property
    def level(self) -> ConfidenceLevel:
        """The confidence in words: high, medium or low."""
        return level_of_confidence(self.answer.confidence)

    @property
    def not_in_memory(self) -> bool:
        """Whether nothing about it is in memory."""
        return self.answer.not_in_memory

    def __str__(self) -> str:
        """Return the answer as a person reads it."""
        return self.text

    def __repr__(self) -> str:
        """Return the answer, its confidence and a line for each citation."""
        cited = repr(self.citations) if self.citations else "nothing is cited"
        return f"{self.text}\n{self._remarks}\n{cited}"

    @property
    def _remarks(self) -> str:
        parts = (confidence_line(self.answer), self.answer.note)
        return plain_line("; ".join(part for part in parts if part))

    def _repr_html_(self) -> str:
        cited = table_of(self.citations) if self.citations else "<p>Nothing is cited.</p>"
        return f"<p><b>{escape(self.text)}</b><br>{escape(self._remarks)}</p>{cited}"
