"""JSON bodies of questions, answers and citations."""

from __future__ import annotations

from pydantic import BaseModel, Field

from domain.asking import Question
from domain.moments import Moment
from domain.people import tags_in_words
from graphs.ask_result import confidence_json, cost_json
from library.search import moments_of
from store.database import Store
from store.queries.trajectories import StoredTrajectory


class AnswerTold(BaseModel):
    """An answer with its citations and cost.

    ``not_in_memory``: the memory does not hold the answer; ``searched`` lists what was searched.
    """

    id: str = Field(description="of the question: GET /questions/{id} has its steps")
    state: str = Field(description="done, or stopped: the best answer so far")
    answer: str
    option: str | None = Field(description="the letter of the chosen option")
    confidence: float = Field(ge=0, le=1)
    confidence_level: str = Field(description="high, medium or low")
    standing: str | None = Field(
        description="supported, weakly supported, or best guess; null if not scored"
    )
    not_in_memory: bool
    note: str = Field(description="limitations of the models, in plain words")
    citations: list[Moment] = Field(description="`score` is how well each supports the answer")
    retrieved: list[Moment]
    searched: list[str]
    rounds: int
    tokens: int
    seconds: float


def answer_body(store: Store, row: StoredTrajectory, rounds: int) -> AnswerTold | None:
    """Return the body of a recorded answer, or None if the question has none."""
    answer, as_of_ms = row.answer, row.question.as_of_ms
    if answer is None:
        return None
    return AnswerTold(
        id=row.id,
        state=row.state,
        answer=tags_in_words(answer.text),
        option=answer.option,
        note=answer.note,
        citations=moments_of(store, answer.citations, as_of_ms),
        retrieved=moments_of(store, answer.retrieved, as_of_ms),
        searched=list(answer.searched),
        **confidence_json(answer),
        **cost_json(rounds, row.tokens, row.seconds),
    )


class QuestionTold(BaseModel):
    """A question, its videos and time, and the state of its run."""

    id: str
    question: str
    videos: list[str]
    options: list[str]
    as_of_s: float | None
    profile: str
    state: str = Field(description="running, done, stopped or failed")
    asked_at: str = Field(description="time by the server's clock (ISO 8601, UTC)")
    answer: str | None


def question_body(row: StoredTrajectory) -> QuestionTold:
    """Return the body of a recorded question."""
    question: Question = row.question
    return QuestionTold(
        id=row.id,
        question=question.text,
        videos=list(question.videos),
        options=list(question.options),
        as_of_s=None if question.as_of_ms is None else question.as_of_ms / 1000,
        profile=row.profile,
        state=row.state,
        asked_at=row.started_at.isoformat(),
        answer=None if row.answer is None else tags_in_words(row.answer.text),
    )
