"""Questions as OpenAI's clients ask them: chat completions, whose models are strategies."""

from __future__ import annotations

import json
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from agent.strategy import AUTO
from api.app_state import ApiState, State
from api.chat_bodies import ChatRequest, ModelLine, ModelList, chunk, cited_text, completion
from api.problems import Problem
from api.routes.questions import CLIENT_CLOSED_REQUEST
from api.sse import KEEP_ALIVE, ClientGone, EventStream, RunningQuestion, StreamItem
from domain.asking import Question
from domain.people import tags_in_words
from domain.trajectory import RoundOpened
from domain.words import client_text
from graphs.ask_result import AskResult
from graphs.runner import Runner
from library.answering import make_question
from library.usage import usage_in
from library.videos import newest_titles
from store.queries.trajectories import events_of
from strategies.registry import check_strategy, strategy_names

router = APIRouter(tags=["chat"])

LISTED_VIDEOS = 100
"""The latest videos that are models of the list; any other can be named as well."""

COMPLETION: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The completion; with `stream`, its pieces as server-sent events.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.get("/v1/models", summary="List models for OpenAI's clients")
def models(state: State) -> ModelList:
    """The strategies, which ask all videos, and the default one over each of the latest videos.

    `STRATEGY/VIDEO` may be asked with any video, by its id or title, also where it is not listed.
    """
    profile = state.toolbox(state.profile).profile
    videos = newest_titles(state.store, LISTED_VIDEOS)
    names = [*strategy_names(), AUTO, *(f"{profile.settings.ask.strategy}/{one}" for one in videos)]
    return ModelList(data=[ModelLine(id=client_text(name)) for name in names])


@router.post(
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
    used = await to_thread.run_sync(_tokens, state, answer.id)
    return JSONResponse(completion(answer, body.model, base_url, used))


def _prepare(state: ApiState, body: ChatRequest) -> tuple[Runner, Question]:
    """Return the runner, and the question with its video resolved."""
    check_strategy(body.strategy)
    question = make_question(state.store, body.question, body.videos)
    return state.runner(state.profile), question


def _tokens(state: ApiState, trajectory: str) -> tuple[int, int]:
    with state.store.begin() as session:
        used = usage_in(events_of(session, trajectory)).total
    return used.tokens_in, used.tokens_out


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
                return await self._answer(item)
            case RoundOpened():
                thought = f"{item.round}. {client_text(tags_in_words(item.text))}\n"
                return self._piece({"role": "assistant", "reasoning_content": thought})
            case _:
                return KEEP_ALIVE

    async def _answer(self, result: AskResult) -> bytes:
        text, found = cited_text(await self._search.answer_body(result), self._base_url)
        whole = self._piece({"role": "assistant", "content": text, "annotations": found})
        return whole + self._piece({}, "stop") + b"data: [DONE]\n\n"

    def _piece(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data(chunk(self._search.id, self._model, delta, finish))

    def _problem(self, problem: Problem) -> bytes:
        error = {"message": client_text(problem.detail), "type": problem.code, "code": problem.code}
        return _data({"error": error})


def _data(payload: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(payload, ensure_ascii=True)}\n\n".encode()
