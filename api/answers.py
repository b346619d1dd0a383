"""Answers and what they rest on, as they are sent."""

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

_CITED: JsonDict = {
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
    """A moment of a video: ``ref`` names a memory (m12), an event (s3) or a keyframe (k7)."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CITED]})

    ref: str
    video: str = Field(description="the video's id")
    title: str
    start_s: float
    end_s: float
    clip: int | None
    text: str
    image: str | None = Field(description="where the keyframe is that shows it, if one does")


class CitedSupport(Cited):
    """A moment that an answer rests on; ``support``: how well it supports it, null: not scored."""

    support: float | None = Field(description="in [0, 1]; null where nothing scored it")


class Retrieved(Cited):
    """A moment that was found, with its score in [0, 1]."""

    score: float


class AnswerTold(BaseModel):
    """An answer with what it rests on, and what it took.

    ``not_in_memory``: the memory does not hold it; ``searched`` says where was looked.
    ``declined``: what was recorded cannot tell, however it is searched; the nearest moments are
    cited.
    """

    id: str = Field(description="of the question: GET /questions/{id} has its steps")
    state: str = Field(description="done, or stopped: the best answer so far")
    answer: str
    option: str | None = Field(description="the letter of the option that was chosen")
    confidence: float = Field(ge=0, le=1)
    confidence_level: str = Field(description="high, medium or low")
    standing: str | None = Field(
        description="supported, weakly supported, or best guess; null where nothing scored it"
    )
    not_in_memory: bool
    declined: bool
    note: str = Field(description="what the models could not do, said plainly")
    citations: list[CitedSupport]
    retrieved: list[Retrieved]
    searched: list[str]
    rounds: int
    tokens: int
    seconds: float


def answer_of(store: Store, row: StoredTrajectory, rounds: int) -> AnswerTold | None:
    """The answer of a question on record, as it is sent; None where it has none."""
    answer, at = row.answer, row.question.as_of_ms
    if answer is None:
        return None
    return AnswerTold(
        id=row.id,
        state=row.state,
        answer=tags_in_words(answer.text),
        option=answer.option,
        note=answer.note,
        citations=[
            CitedSupport(**one.model_dump(), support=of.support)
            for one, of in zip(cited(store, answer.citations, at), answer.citations, strict=True)
        ],
        retrieved=scored(cited(store, answer.retrieved, at), answer.retrieved),
        searched=list(answer.searched),
        **confidence_json(answer),
        **cost_json(rounds, row.tokens, row.seconds),
    )


def cited(
    store: Store, moments: Sequence[Citation | Evidence], as_of_ms: int | None = None
) -> list[Cited]:
    """Moments with the titles of their videos, and where their images are; none of later ones."""
    titles = {
        name: one.title for name, one in videos_named(store, [m.video for m in moments]).items()
    }
    return [
        Cited(
            ref=one.ref,
            video=one.video,
            title=titles.get(one.video, one.video),
            clip=one.clip,
            text=tags_in_words(one.text),
            image=image_at(store, one, as_of_ms),
            **span_json(one),
        )
        for one in moments
    ]


def scored(moments: Sequence[Cited], found: Sequence[Evidence]) -> list[Retrieved]:
    """The same with their scores."""
    pairs = zip(moments, found, strict=True)
    return [Retrieved(**one.model_dump(), **score_json(of)) for one, of in pairs]


def image_at(store: Store, one: Citation | Evidence, as_of_ms: int | None = None) -> str | None:
    """Where the keyframe of a moment is, if it has one that was there by then."""
    frame = frame_at(store, one.video, one.span.start_ms, one.ref, as_of_ms)
    return None if frame is None else keyframe_path(one.video, frame.id)


def keyframe_path(video: str, frame: int) -> str:
    """Where the image of a keyframe is."""
    return f"/media/keyframes/{video}/{frame}"


class QuestionTold(BaseModel):
    """What was asked, of which videos, as of when, and how far it is."""

    id: str
    question: str
    videos: list[str]
    options: list[str]
    as_of_s: float | None
    profile: str
    state: str = Field(description="running, done, stopped or failed")
    asked_at: str = Field(description="when, by the server's clock (ISO 8601, UTC)")
    answer: str | None


def question_of(row: StoredTrajectory) -> QuestionTold:
    """A question of the record, as it is sent."""
    asked: Question = row.question
    return QuestionTold(
        id=row.id,
        question=asked.text,
        videos=list(asked.videos),
        options=list(asked.options),
        as_of_s=None if asked.as_of_ms is None else asked.as_of_ms / 1000,
        profile=row.profile,
        state=row.state,
        asked_at=row.started_at.isoformat(),
        answer=None if row.answer is None else tags_in_words(row.answer.text),
    )
