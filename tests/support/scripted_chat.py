"""A LangChain chat model that answers from a script, without any server.

toolbox = Toolbox(profile, weights, chat_factory=scripted([{"city": "Paris"}]))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda

from models.endpoint import ChatFactory
from models.specs import ChatSpec


class ScriptedChat(BaseChatModel):
    """Calls ``answer`` with the messages; a value is sent as JSON, a string as it is.

    An exception that ``answer`` returns is raised, as if the server had failed. ``seen`` are the
    messages of each call, ``temperatures`` what they were asked at.
    """

    answer: Callable[[list[BaseMessage]], Any]
    seen: list[list[BaseMessage]]
    temperatures: list[float | None]
    temperature: float | None = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(messages)
        self.temperatures.append(self.temperature)
        said = self.answer(messages)
        if isinstance(said, Exception):
            raise said
        text = said if isinstance(said, str) else json.dumps(said)
        usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        message = AIMessage(content=text, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        return RunnableLambda(lambda messages: {"raw": self.invoke(messages)})


class Scripted:
    """A chat factory whose models all answer from one script, and what they were asked."""

    def __init__(self, script: Iterable[Any] | Callable[[list[BaseMessage]], Any]) -> None:
        self.seen: list[list[BaseMessage]] = []
        self.temperatures: list[float | None] = []
        self._answer = script if callable(script) else _in_order(script)

    def __call__(self, spec: ChatSpec, temperature: float | None) -> BaseChatModel:
        model = ScriptedChat(answer=self._answer, seen=[], temperatures=[], temperature=temperature)
        # pydantic copies lists: hand over ours afterwards.
        model.seen, model.temperatures = self.seen, self.temperatures
        return model


def scripted(script: Iterable[Any] | Callable[[list[BaseMessage]], Any]) -> Scripted:
    """A chat factory for ``Toolbox`` or ``Endpoint`` that answers from ``script``."""
    return Scripted(script)


def _in_order(script: Iterable[Any]) -> Callable[[list[BaseMessage]], Any]:
    answers = iter(script)
    return lambda _messages: next(answers)


_: ChatFactory = Scripted([])
