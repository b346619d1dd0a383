"""Asking, and what was asked."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from api.answers import AnswerTold, QuestionTold, answer_of, question_of
from api.app_state import ApiState, Desk
from api.asking import RunningQuestion
from api.disconnect import ClientGone
from api.params import PAGE, Asked, Limit, Offset, Page, after, as_of_ms
from api.sse import MEDIA_TYPE, EventStream, wants_events
from domain.asking import Question, check_options
from domain.errors import InputError
from graphs.runner import Runner
from store.queries.videos import named_or_only
from views.rounds import (
    InspectedTrajectory,
    inspect_trajectory,
    page_of_trajectories,
    round_headline,
)
from views.trajectory import Round

router = APIRouter(tags=["questions"])

NOBODY = 499
"""The client closed the connection (nginx's code): nobody is there to read it."""

Text = Annotated[str, Field(max_length=1000)]
Id = Annotated[
    str, Path(max_length=64, description="The question's id, or an unambiguous beginning of it.")
]

Accept = Annotated[str, Header(description="text/event-stream: the search as it goes.")]


class Ask(BaseModel):
    """A question, of which videos, and as of when."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"question": "Who opens the talk?", "videos": ["talk"]},
                {
                    "question": "Where was it?",
                    "videos": ["talk"],
                    "options": ["Paris", "Berlin"],
                    "as_of": "12:30",
                },
            ]
        },
    )

    question: str = Field(min_length=1, max_length=4000, description="What you want to know.")
    videos: tuple[Text, ...] = Field(
        default=(),
        max_length=100,
        description="Ids, unambiguous beginnings, or titles. May be left out where there is one.",
    )
    options: tuple[Text, ...] = Field(
        default=(), max_length=26, description="The choices of a multiple-choice question."
    )
    as_of: float | Annotated[str, Field(max_length=40)] | None = Field(
        default=None,
        description="Use only what was seen by then: seconds, or MM:SS, H:MM:SS, d2 H:MM:SS.",
    )
    profile: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Set of models; the server's default."
    )


class RoundTold(BaseModel):
    """A round of searching in a line, and what it looked for."""

    number: int
    headline: str
    subtask: str
    mode: str | None
    query: str
    found: int


class Trajectory(QuestionTold):
    """A question with its rounds and its answer.

    ``at_work``: it is being searched at this moment.
    """

    at_work: bool
    rounds: list[RoundTold]
    result: AnswerTold | None = Field(description="the whole answer, with its citations")
    errors: list[str]


class Questions(Page):
    """A page of questions, the latest first."""

    questions: list[QuestionTold]


class Events(Page):
    """A page of a trajectory's events, each of its own `kind`, in order."""

    events: list[dict[str, Any]]


STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; or, with `Accept: text/event-stream`, the search as it goes.",
        "content": {
            MEDIA_TYPE: {
                "schema": {"type": "string"},
                "example": 'event: question\ndata: {"id": "3f2a", ...}\n\nevent: round\ndata: {...}'
                '\n\nevent: words\ndata: {"round": 1, "purpose": "act", "text": "the gate"}\n\n'
                'event: retrieve\ndata: {...}\n\nevent: answer\ndata: {"answer": "Ann", ...}\n\n',
            }
        },
    }
}


@router.post("/questions", summary="Ask a question", response_model=AnswerTold, responses=STREAM)
async def ask(
    desk: Desk, request: Request, body: Ask, accept: Accept = ""
) -> AnswerTold | Response:
    """Ask, and wait for the answer with the moments that support it.

    With `Accept: text/event-stream` the search is told as it goes: `question` with its id, then for
    every step an event of its kind (`plan`, `round`, `act`, `retrieve`, `assess`, ...; GET
    /questions/{id}/events has the same), `words` while a model writes, and `answer` last, which is
    what is sent without events. `problem` comes in its place where the search fails.

    Who hangs up stops the search; the best answer so far is kept. Where as many questions are
    searched as the server takes, 429 says when to ask again.
    """
    asker, question = await to_thread.run_sync(_prepared, desk, body)
    search = RunningQuestion(desk, request, asker, question)
    try:
        if not wants_events(accept):
            return await search.answer()
        events = search.events()
        return EventStream(search, await anext(events), events)
    except ClientGone:
        return Response(status_code=NOBODY)


def _prepared(desk: ApiState, body: Ask) -> tuple[Runner, Question]:
    """The machine of the profile, and the question of the videos that are named."""
    if not body.question.strip():
        raise InputError("the question is empty")
    at, options, profile = (
        as_of_ms(body.as_of),
        check_options(body.options),
        desk.named(body.profile),
    )
    with desk.store.begin() as session:
        videos = named_or_only(session, body.videos)
    if not videos:
        raise InputError("which video? name one or more in `videos`: GET /videos lists them")
    text = body.question.strip()
    question = Question(text=text, videos=videos, options=options, as_of_ms=at)
    return desk.runner(profile), question


@router.get("/questions", summary="What was asked")
def questions(desk: Desk, offset: Offset = 0, limit: Limit = PAGE, q: Asked = "") -> Questions:
    """The latest questions first, without their steps."""
    found, total = page_of_trajectories(desk.store, limit, offset, q)
    rows = [question_of(one) for one in found]
    return Questions(
        total=total, offset=offset, next=after(offset, len(found), total), questions=rows
    )


@router.get("/questions/{name}", summary="A question with its rounds and answer")
def question(desk: Desk, name: Id) -> Trajectory:
    """How a question was searched, round by round, and its answer with the citations."""
    found = inspect_trajectory(desk.store, name)
    row = found.row
    return Trajectory(
        **question_of(row).model_dump(),
        at_work=found.at_work,
        rounds=[_round(found, one) for one in found.history.rounds],
        result=answer_of(desk.store, row, len(found.history.rounds)),
        errors=[one.message for one in found.history.errors],
    )


@router.get("/questions/{name}/events", summary="Every step of a question")
def events(desk: Desk, name: Id, offset: Offset = 0, limit: Limit = PAGE) -> Events:
    """The events of a trajectory, each as it was recorded: plans, searches, evidence, verdicts."""
    every = inspect_trajectory(desk.store, name).history.events
    shown = [one.model_dump(mode="json") for one in every[offset : offset + limit]]
    total = len(every)
    return Events(total=total, offset=offset, next=after(offset, len(shown), total), events=shown)


def _round(found: InspectedTrajectory, one: Round) -> RoundTold:
    action = one.action
    return RoundTold(
        number=one.number,
        headline=round_headline(found.history, one.number),
        subtask=one.text,
        mode=None if action is None or action.mode is None else action.mode.value,
        query=action.query if action else "",
        found=len(one.found.evidence) if one.found else 0,
    )
