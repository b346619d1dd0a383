"""The three ways to hold a model to a schema, and reading what it answered in each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from domain.texts import storable
from models.profile import Structure

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.runnables import Runnable

STRUCTURES: tuple[Structure, ...] = ("json_schema", "tools", "text")
PROTOCOL = Path(__file__).with_name("protocol.md")
METHODS = {"json_schema": "json_schema", "tools": "function_calling"}
CHARACTERS_A_TOKEN = 4
CUT_OFF = "LengthFinishReasonError"
ENDED_BY_LIMIT = frozenset({"length", "max_tokens"})
"""What providers call the end of a reply that the limit on tokens cut off."""

Hear = Callable[[str], None]
"""Is given all that a reply says so far, each time that more of it has come."""


@dataclass(frozen=True)
class Answer:
    """A model's answer: the text of the object it gave, and the tokens it took.

    ``cut`` says that it was ended by the limit on tokens.
    """

    text: str
    tokens_in: int
    tokens_out: int
    cut: bool = False


def weaker(structure: Structure) -> tuple[Structure, ...]:
    """``structure`` and those to fall back to, strongest first."""
    return STRUCTURES[STRUCTURES.index(structure) :]


def request(
    model: BaseChatModel,
    structure: Structure,
    messages: Sequence[dict[str, Any]],
    schema: dict[str, Any],
    protocol: str = "",
    hear: Hear | None = None,
) -> Answer:
    """Send one request, holding the model to ``schema`` in the given way.

    ``protocol`` says how to answer as text, where that is not a JSON object. With ``hear`` the
    reply is asked for, and told, piece by piece.

    Raises whatever the model's client raises; ``NotImplementedError`` where it knows no such way.
    """
    sent = list(messages)
    if structure == "text":
        sent = [*sent, {"role": "user", "content": protocol or _protocol(schema)}]
        return _answer(_heard(model, sent, hear) if hear else model.invoke(sent), sent)
    chain = model.with_structured_output(schema, method=METHODS[structure], include_raw=True)
    try:
        outcome: Any = {"raw": _heard(chain, sent, hear)} if hear else chain.invoke(sent)
    except Exception as error:
        # Some clients raise where the limit on tokens cut a reply off: what was said is in there.
        partial = getattr(error, "completion", None)
        if type(error).__name__ != CUT_OFF or partial is None:
            raise
        return _cut_off(partial, sent)
    return _answer(outcome["raw"], sent)


def _heard(chain: Runnable[Any, Any], sent: Sequence[dict[str, Any]], hear: Hear) -> AIMessage:
    """The whole reply, told as it grows.

    The chain's model is listened to, not the chain: that gives what it makes of the whole, or
    fails to make of it, and reading it is ours.

    Raises:
        ConnectionError: nothing came.
    """
    from langchain_core.exceptions import OutputParserException

    pieces, ear = _ear(hear)
    with suppress(OutputParserException):
        for _ in chain.stream(list(sent), config={"callbacks": [ear]}):
            pass
    if not pieces:
        raise ConnectionError("the server ended the reply before it began")
    return pieces[0]


def _ear(hear: Hear) -> tuple[list[AIMessageChunk], BaseCallbackHandler]:
    """What listens to a model, and the place for the one message that its pieces add up to."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import AIMessageChunk

    pieces: list[AIMessageChunk] = []

    class Ear(BaseCallbackHandler):
        raise_error = True

        def on_llm_new_token(self, token: Any, *_: Any, chunk: Any = None, **__: Any) -> None:
            new = chunk.message if chunk is not None else AIMessageChunk(content=token)
            pieces[:] = [pieces[0] + new if pieces else new]
            hear(storable(_object_text(pieces[0])))

    return pieces, Ear()


def _cut_off(completion: Any, sent: Sequence[dict[str, Any]]) -> Answer:
    text = storable(completion.choices[0].message.content or "")
    usage = completion.usage
    return Answer(
        text=text,
        tokens_in=usage.prompt_tokens if usage else _estimate(json.dumps(_texts(sent))),
        tokens_out=usage.completion_tokens if usage else _estimate(text),
        cut=True,
    )


def _protocol(schema: dict[str, Any]) -> str:
    template = Template(PROTOCOL.read_text(encoding="utf-8"))
    return template.substitute(schema=json.dumps(schema, ensure_ascii=False))


def _answer(raw: AIMessage, sent: Sequence[dict[str, Any]]) -> Answer:
    text = storable(_object_text(raw))
    usage: Any = raw.usage_metadata or {}
    ended = str(raw.response_metadata.get("finish_reason", "")).lower()
    return Answer(
        text=text,
        tokens_in=usage.get("input_tokens") or _estimate(json.dumps(_texts(sent))),
        tokens_out=usage.get("output_tokens") or _estimate(text),
        cut=ended in ENDED_BY_LIMIT,
    )


def _object_text(raw: AIMessage) -> str:
    """The object as text: a tool call's arguments, or else what was said."""
    if pieces := getattr(raw, "tool_call_chunks", None):
        return pieces[0]["args"] or ""
    if raw.tool_calls:
        return json.dumps(raw.tool_calls[0]["args"], ensure_ascii=False)
    if raw.invalid_tool_calls:
        return raw.invalid_tool_calls[0]["args"] or ""
    return str(raw.text)


def _texts(sent: Sequence[dict[str, Any]]) -> list[Any]:
    """What was sent without images, whose size in tokens has nothing to do with their bytes."""
    contents = [message["content"] for message in sent]
    return [
        content if isinstance(content, str) else [part.get("text", "") for part in content]
        for content in contents
    ]


def _estimate(text: str) -> int:
    """Tokens of a text, roughly, for servers that do not count them."""
    return max(1, len(text) // CHARACTERS_A_TOKEN)
