"""Ask questions, and list them with their trajectories."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from api.app_state import ApiState, State
from api.sse import MEDIA_TYPE, ClientGone, EventStream, RunningQuestion, wants_events
from domain.asking import Question
from domain.moments import Answered
from graphs.runner import Runner
from library.answering import make_question
from library.registry import act_of
from strategies.registry import check_strategy

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
    if body.strategy is not None:
        check_strategy(body.strategy)
    return state.runner(profile), question
