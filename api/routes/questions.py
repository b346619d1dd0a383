"""Ask questions: Homer's own route, and chat completions as OpenAI's clients ask them.

The models of the chat completions are strategies.
"""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from agent.strategy import AUTO
from api.door import ApiState, State
from api.problems import Problem
from api.sse import (
    KEEP_ALIVE,
    MEDIA_TYPE,
    ClientGone,
    EventStream,
    RunningQuestion,
    StreamItem,
    wants_events,
)
from domain.asking import Question
from domain.errors import InputError
from domain.moments import Answered
from domain.people import tags_in_words
from domain.trajectory import RoundOpened
from domain.words import client_text, format_time, plain_line
from graphs.ask_result import AskResult
from graphs.runner import Runner
from library.answering import make_question
from library.registry import act_of
from library.trajectories import usage_in
from library.videos import newest_titles
from store.queries.trajectories import events_of
from strategies.registry import check_strategy, strategy_names

router = APIRouter(tags=["questions"])

CLIENT_CLOSED_REQUEST = 499
"""The client closed the connection (nginx's status code)."""

Accept = Annotated[str, Header(description="text/event-stream: the events of the search.")]


class Ask(act_of("asking.ask").remote_arguments):  # type: ignore[misc]
    """A question, its videos and its time."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who opens the talk?", "video": ["talk"]}]}
    )
    profile: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Set of models; the server's default."
    )


STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with `Accept: text/event-stream`, the events of the search.",
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


@router.post("/questions", summary="Ask a question", response_model=Answered, responses=STREAM)
async def ask(
    state: State, request: Request, body: Ask, accept: Accept = ""
) -> Answered | Response:
    """Ask, and wait for the answer with the moments that support it.

    With `Accept: text/event-stream` the response is a stream of events: `question` with its id, an
    event for every step (`plan`, `round`, `act`, `retrieve`, `assess`, ...; the same as in GET
    /questions/{id}/events), `words` while a model writes, and at last `answer`, with the body that
    is otherwise the response. If the search fails, `problem` comes instead.

    Disconnecting stops the search; the best answer so far is recorded. At the limit of concurrent
    questions the status is 429, with Retry-After.
    """
    runner, question = await to_thread.run_sync(prepare_question, state, body)
    search = RunningQuestion(state, request, runner, question, body.strategy)
    try:
        if not wants_events(accept):
            return await search.answer()
        events = search.events()
        return EventStream(search, await anext(events), events)
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)


def prepare_question(state: ApiState, body: Ask) -> tuple[Runner, Question]:
    """Return the runner of the profile, and the question with its videos resolved.

    Raises:
        InputError: the question is empty, its time or an option is wrong, or nothing was watched.
        NotFound: there is no such video or strategy.
    """
    profile = state.profile_name(body.profile)
    question = make_question(state.store, body.question, body.video, body.options, body.as_of)
    # Before the run begins: an unknown name is refused with a status of its own.
    if body.strategy is not None:
        check_strategy(body.strategy)
    return state.runner(profile), question


# Chat completions.


MOST_CHARS = 4000
"""Characters of a question."""


class TextPart(BaseModel):
    """A part of a message that is text; parts of other kinds are refused."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str = Field(max_length=MOST_CHARS)


class ChatMessage(BaseModel):
    """A message of a conversation; other fields than these are not read."""

    role: str = Field(max_length=40)
    content: (
        Annotated[str, Field(max_length=100_000)]
        | Annotated[list[TextPart], Field(max_length=100)]
        | None
    ) = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


class ChatRequest(BaseModel):
    """A request for a completion; what steers language models is not read."""

    model: str = Field(
        max_length=400, description="a strategy, or STRATEGY/VIDEO", examples=["homer/talk"]
    )
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    n: Literal[1] | None = None

    @property
    def question(self) -> str:
        """The last message of the user; an InputError if it is missing, empty or too long."""
        said = [message.text for message in self.messages if message.role == "user"]
        if not said or not said[-1]:
            raise InputError("the last message of the role 'user' is the question: it is empty")
        if len(said[-1]) > MOST_CHARS:
            raise InputError(f"the question is longer than {MOST_CHARS} characters")
        return said[-1]

    @property
    def strategy(self) -> str:
        """The strategy that the model's name begins with."""
        return self.model.partition("/")[0]

    @property
    def videos(self) -> tuple[str, ...]:
        """The video that the model's name ends with; none: all."""
        video = self.model.partition("/")[2]
        return (video,) if video else ()


class ModelLine(BaseModel):
    """A model of the list."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["homer"] = "homer"


class ModelList(BaseModel):
    """The list of models."""

    object: Literal["list"] = "list"
    data: list[ModelLine]


def cited_text(answer: Answered, base_url: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the answer with a numbered line for each moment that it cites, and annotations.

    An annotation says where in the text a moment is cited, and at which address it is.
    """
    text = f"{answer.option}. {answer.answer}" if answer.option else answer.answer
    text = client_text("\n\n".join(part for part in (text, answer.note) if part))
    found = []
    for number, one in enumerate(answer.citations, 1):
        text += "\n\n" if number == 1 else "\n"
        place = f"{client_text(plain_line(one.title))} {format_time(one.span.start_ms)}"
        start = len(text)
        text += f"[{number}]"
        url = f"{base_url.rstrip('/')}/videos/{one.video}/memory?at={one.span.start_ms / 1000:g}"
        cited = {"start_index": start, "end_index": len(text), "title": place, "url": url}
        found.append({"type": "url_citation", "url_citation": cited})
        text += f" {place}: {client_text(plain_line(one.text))}"
    return text, found


def _completion(
    kind: str, question: str, model: str, finish: str | None, **said: dict[str, Any]
) -> dict[str, Any]:
    """Return a completion or a piece of one; ``said`` has its ``message`` or ``delta``."""
    choice = {"index": 0, **said, "finish_reason": finish, "logprobs": None}
    head = {"id": question, "object": kind, "created": int(time.time()), "model": model}
    return head | {"choices": [choice]}


chats = APIRouter(tags=["chat"])

LISTED_VIDEOS = 100
"""The latest videos that are models of the list; any other can be named as well."""

COMPLETION: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The completion; with `stream`, its pieces as server-sent events.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@chats.get("/v1/models", summary="List models for OpenAI's clients")
def models(state: State) -> ModelList:
    """The strategies, which ask all videos, and the default one over each of the latest videos.

    `STRATEGY/VIDEO` may be asked with any video, by its id or title, also where it is not listed.
    """
    profile = state.toolbox(state.profile).profile
    videos = newest_titles(state.store, LISTED_VIDEOS)
    names = [*strategy_names(), AUTO, *(f"{profile.settings.ask.strategy}/{one}" for one in videos)]
    return ModelList(data=[ModelLine(id=client_text(name)) for name in names])


@chats.post(
    "/v1/chat/completions",
    summary="Ask as OpenAI's clients do",
    response_model=None,
    responses=COMPLETION,
)
async def complete(state: State, request: Request, body: ChatRequest) -> Response:
    """Ask the last message of the user, and wait for the answer.

    Earlier messages and settings of language models are not read. The answer's text has a numbered
    line for each moment that it cites; `annotations` say where in the text, and have its address.
    With `stream`, the rounds of the search come as `reasoning_content` and the answer as `content`.
    """
    runner, question = await to_thread.run_sync(_prepare, state, body)
    search = RunningQuestion(state, request, runner, question, body.strategy)
    base_url = str(request.base_url)
    try:
        if body.stream:
            events = search.events()
            return ChatStream(search, await anext(events), events, body.model, base_url)
        answer = await search.answer()
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    text, found = cited_text(answer, base_url)
    message = {"role": "assistant", "content": text, "annotations": found}
    whole = _completion("chat.completion", answer.id, body.model, "stop", message=message)
    used = await to_thread.run_sync(_usage, state, answer.id)
    return JSONResponse(whole | {"usage": used})


def _prepare(state: ApiState, body: ChatRequest) -> tuple[Runner, Question]:
    check_strategy(body.strategy)
    question = make_question(state.store, body.question, body.videos)
    return state.runner(state.profile), question


def _usage(state: ApiState, trajectory: str) -> dict[str, int]:
    """Return the tokens of a question: 0 where no model was asked."""
    with state.store.begin() as session:
        used = usage_in(events_of(session, trajectory)).total
    tokens = {"prompt_tokens": used.tokens_in, "completion_tokens": used.tokens_out}
    return tokens | {"total_tokens": used.tokens_in + used.tokens_out}


class ChatStream(EventStream):
    """Sends a completion in pieces, as OpenAI's clients read them."""

    def __init__(
        self, search: RunningQuestion, first: StreamItem, rest: Any, model: str, base_url: str
    ) -> None:
        super().__init__(search, first, rest)
        self._model, self._base_url = model, base_url

    async def _line(self, item: StreamItem) -> bytes:
        match item:
            case AskResult():
                text, found = cited_text(await self._search.answer_body(item), self._base_url)
                whole = self._piece({"role": "assistant", "content": text, "annotations": found})
                return whole + self._piece({}, "stop") + b"data: [DONE]\n\n"
            case RoundOpened():
                thought = f"{item.round}. {client_text(tags_in_words(item.text))}\n"
                return self._piece({"role": "assistant", "reasoning_content": thought})
            case _:
                return KEEP_ALIVE

    def _piece(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        kind = "chat.completion.chunk"
        return _data(_completion(kind, self._search.id, self._model, finish, delta=delta))

    def _problem(self, problem: Problem) -> bytes:
        error = {"message": client_text(problem.detail), "type": problem.code, "code": problem.code}
        return _data({"error": error})


def _data(payload: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(payload, ensure_ascii=True)}\n\n".encode()
