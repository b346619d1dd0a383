"""The tool of the MCP server that asks a question: it reports progress, and can be cancelled."""

from __future__ import annotations

import inspect
from contextlib import aclosing

from anyio import to_thread
from mcp_types import CallToolResult

from api.app_state import ApiState
from api.mcp_tools import Arguments, CallContext, McpTool, listed_tool, told
from api.routes.questions import Ask, prepare_question
from api.running_question import RunningQuestion, ServerStopping
from domain.moments import Answered
from domain.people import tags_in_words
from domain.trajectory import RoundOpened
from domain.words import client_text
from graphs.ask_result import AskResult

SEARCHING = "still searching"


def asking_tool() -> McpTool:
    """Return the tool."""
    return McpTool(listed_tool("ask", inspect.getdoc(ask) or "", Ask, Answered), ask)


async def ask(state: ApiState, context: CallContext, given: Arguments) -> CallToolResult:
    """Answer a question about the videos, with the moments that support the answer.

    The memory is searched step by step, which can take minutes. `not_in_memory` is an answer too,
    with what was searched. Say `as_of` to use only what was seen by then.
    """
    body = Ask.model_validate(given)
    runner, question = await to_thread.run_sync(prepare_question, state, body)
    running = RunningQuestion(state, None, runner, question, body.strategy)
    return told(await _answer(running, context))


async def _answer(running: RunningQuestion, context: CallContext) -> Answered:
    """Wait for the answer, and report each round; cancelling ends the run at its next step."""
    message, reports = SEARCHING, 0
    async with aclosing(running.events()) as events:
        async for item in events:
            if isinstance(item, AskResult):
                return await running.answer_body(item)
            if isinstance(item, RoundOpened):
                message = client_text(f"{item.round}. {tags_in_words(item.text)}")
            reports += 1
            await context.session.report_progress(reports, message=message)
    raise ServerStopping(running.id)
