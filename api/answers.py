"""JSON bodies of questions, answers and citations."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from domain.asking import Citation, Evidence, Question
from domain.people import tags_in_words
from graphs.ask_result import confidence_json, cost_json, score_json, span_json
from store.database import Store
from store.queries.trajectories import StoredTrajectory
from views.library import videos_named
from views.moment import frame_at

_EXAMPLE: JsonDict = {
    "ref": "m12",
    "video": "0123456789abcdef",
    "title": "talk",
    "start_s": 1.7,
    "end_s": 9.2,
    "clip": 0,
    "text": "Ann opens the talk",
    "image": "/media/keyframes/0123456789abcdef/7",
}


class Cited(BaseModel):
    """A moment of a video.

    ``ref`` names a memory (m12), an event (s3), an image (k7, or f7 for one that a strategy kept),
    or what a strategy built: a node (n2), an entity (e5) or a relation (r4).
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    ref: str
    video: str = Field(description="the video's id")
    title: str
    start_s: float
    end_s: float
    clip: int | None
    text: str
    image: str | None = Field(description="path of an image that shows it, or null")


class CitedSupport(Cited):
    """A citation; ``support`` is how well it supports the answer."""

    support: float | None = Field(description="in [0, 1]; null if not scored")


class Retrieved(Cited):
    """A moment that a search returned, with its score in [0, 1]."""

    score: float


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
    citations: list[CitedSupport]
    retrieved: list[Retrieved]
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
        citations=[
            CitedSupport(**cited.model_dump(), support=citation.support)
            for cited, citation in zip(
                cite(store, answer.citations, as_of_ms), answer.citations, strict=True
            )
        ],
        retrieved=with_scores(cite(store, answer.retrieved, as_of_ms), answer.retrieved),
        searched=list(answer.searched),
        **confidence_json(answer),
        **cost_json(rounds, row.tokens, row.seconds),
    )


def cite(
    store: Store, items: Sequence[Citation | Evidence], as_of_ms: int | None = None
) -> list[Cited]:
    """Return moments with titles and image paths; with ``as_of_ms``, no images of later frames."""
    titles = {
        name: moment.title
        for name, moment in videos_named(store, [moment.video for moment in items]).items()
    }
    return [
        Cited(
            ref=moment.ref,
            video=moment.video,
            title=titles.get(moment.video, moment.video),
            clip=moment.clip,
            text=tags_in_words(moment.full_text),
            image=image_path_at(store, moment, as_of_ms),
            **span_json(moment),
        )
        for moment in items
    ]


def with_scores(moments: Sequence[Cited], found: Sequence[Evidence]) -> list[Retrieved]:
    """Add the scores of evidence to its moments."""
    pairs = zip(moments, found, strict=True)
    return [Retrieved(**moment.model_dump(), **score_json(evidence)) for moment, evidence in pairs]


def image_path_at(
    store: Store, moment: Citation | Evidence, as_of_ms: int | None = None
) -> str | None:
    """Return the path of the image that shows a moment, not later than ``as_of_ms``."""
    frame = frame_at(store, moment.video, moment.span.start_ms, moment.ref, as_of_ms)
    return None if frame is None else image_path(moment.video, frame.ref)


def image_path(video: str, ref: str) -> str:
    """Return the path of the image that a ref names."""
    kind = "frames" if ref.startswith("f") else "keyframes"
    return f"/media/{kind}/{video}/{ref[1:]}"


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
