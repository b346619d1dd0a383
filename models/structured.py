"""The three ways to hold a model to a schema, and reading what it answered in each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, cast

from domain.texts import make_storable
from models.profile import Structure

if TYPE_CHECKING:
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

TOLD_PARTS = 32
"""A reply is told again once it has grown by one in so many of its characters."""
_NO_CALL: Any = object()

OnText = Callable[[str], None]
"""Is given all that a reply says so far, now and then while it comes, and all of it at the end."""


@dataclass(frozen=True)
class StructuredReply:
    """A model's answer: the text of the object it gave, and the tokens it took.

    ``cut`` says that it was ended by the limit on tokens, ``too_long`` that it was ended here, by
    the limit on characters.
    """

    text: str
    tokens_in: int
    tokens_out: int
    cut: bool = False
    too_long: bool = False


def structures_from(structure: Structure) -> tuple[Structure, ...]:
    """``structure`` and those to fall back to, strongest first."""
    return STRUCTURES[STRUCTURES.index(structure) :]


def request(
    model: BaseChatModel,
    structure: Structure,
    messages: Sequence[dict[str, Any]],
    schema: dict[str, Any],
    protocol: str = "",
    on_text: OnText | None = None,
    most: int | None = None,
) -> StructuredReply:
    """Send one request, holding the model to ``schema`` in the given way.

    ``protocol`` says how to answer as text, where that is not a JSON object. With ``on_text`` the
    reply is asked for, and told, piece by piece. Of one longer than ``most`` characters no more
    is taken.

    Raises whatever the model's client raises; ``NotImplementedError`` where it knows no such way.
    """
    sent = list(messages)
    if structure == "text":
        sent = [*sent, {"role": "user", "content": protocol or _protocol(schema)}]
        if on_text:
            return _heard(model, sent, on_text, most)
        return _limited(_answer(model.invoke(sent), sent), most)
    way = METHODS[structure]
    try:
        if on_text:
            return _heard(_bound(model, schema, way), sent, on_text, most)
        chain = model.with_structured_output(schema, method=way, include_raw=True)
        outcome: Any = chain.invoke(sent)
    except Exception as error:
        # Some clients raise where the limit on tokens cut a reply off: what was said is in there.
        partial = getattr(error, "completion", None)
        if type(error).__name__ != CUT_OFF or partial is None:
            raise
        return _limited(_cut_off(partial, sent), most)
    return _limited(_answer(outcome["raw"], sent), most)


def _bound(model: BaseChatModel, schema: dict[str, Any], way: str) -> Runnable[Any, Any]:
    """The model held to ``schema``, without the parser behind it.

    LangChain's parsers read all that came so far anew with each piece; reading it is ours.

    Raises:
        NotImplementedError: the model's client does it in a way that cannot be taken apart.
    """
    from langchain_core.runnables import RunnableSequence

    chain = model.with_structured_output(schema, method=way)
    if not isinstance(chain, RunnableSequence):
        raise NotImplementedError(f"{type(model).__name__} cannot be heard while it answers")
    return chain.first


def _heard(
    model: Runnable[Any, Any], sent: Sequence[dict[str, Any]], on_text: OnText, most: int | None
) -> StructuredReply:
    """The whole reply, told as it grows; no more of it is taken than ``most`` characters.

    Raises:
        ConnectionError: nothing came.
    """
    growing = StreamedReply(on_text, most)
    # LangChain streams by generators: closing it hangs up on who goes on and on.
    stream = cast("Generator[Any, None, None]", model.stream(list(sent)))
    with closing(stream) as pieces:
        for piece in pieces:
            growing.add(piece)
            if growing.too_long:
                break
    if not growing.begun:
        raise ConnectionError("the server ended the reply before it began")
    return growing.answer(sent)


class StreamedReply:
    """A reply that comes piece by piece, put together once; time and space grow with its length.

    Args:
        on_text: called with the text so far whenever it has grown by a part of its length, and at
            the end, so that all it is called with grows with the length of the reply too.
        most: characters after which no more is wanted; None: no limit.
    """

    def __init__(self, on_text: OnText, most: int | None = None) -> None:
        self._hear, self._most = on_text, most
        self._said: list[str] = []
        self._arguments: list[str] = []
        self._call: Any = _NO_CALL
        self._length = self._told = 0
        self._usage: Any = {}
        self._ended = ""
        self.begun = False

    @property
    def too_long(self) -> bool:
        """Whether it is longer than it may be."""
        return self._most is not None and self._length > self._most

    def add(self, piece: AIMessageChunk) -> None:
        """Take the next piece."""
        self.begun = True
        self._add_text(str(piece.text), self._said)
        for call in getattr(piece, "tool_call_chunks", ()):
            self._add_call(call)
        self._usage = _added(self._usage, getattr(piece, "usage_metadata", None))
        self._ended = str(piece.response_metadata.get("finish_reason") or self._ended)
        if (self._length - self._told) * TOLD_PARTS > self._told:
            self._tell()

    def answer(self, sent: Sequence[dict[str, Any]]) -> StructuredReply:
        """All that came, once nothing more comes."""
        if self._told < self._length:
            self._tell()
        text = make_storable(self._text())
        return StructuredReply(
            text=text[: self._most] if self.too_long else text,
            tokens_in=self._usage.get("input_tokens") or _estimate(json.dumps(_texts(sent))),
            tokens_out=self._usage.get("output_tokens") or _estimate(text),
            cut=self._ended.lower() in ENDED_BY_LIMIT,
            too_long=self.too_long,
        )

    def _add_call(self, call: Any) -> None:
        """Only the first tool that is called counts; one without an index comes in one piece."""
        index = call["index"]
        if self._call is _NO_CALL:
            self._call = index
        elif index is None or index != self._call:
            return
        self._add_text(call["args"] or "", self._arguments)

    def _add_text(self, text: str, parts: list[str]) -> None:
        if text:
            parts.append(text)
            self._length += len(text)

    def _text(self) -> str:
        return "".join(self._said if self._call is _NO_CALL else self._arguments)

    def _tell(self) -> None:
        self._told = self._length
        self._hear(make_storable(self._text()))


def _added(usage: Any, more: Any) -> Any:
    """Tokens counted so far: clients tell them of each piece, or of all with the last."""
    if not more:
        return usage
    return {
        name: usage.get(name, 0) + (more.get(name) or 0)
        for name in ("input_tokens", "output_tokens")
    }


def _limited(answer: StructuredReply, most: int | None) -> StructuredReply:
    if most is None or len(answer.text) <= most:
        return answer
    return replace(answer, text=answer.text[:most], too_long=True)


def _cut_off(completion: Any, sent: Sequence[dict[str, Any]]) -> StructuredReply:
    text = make_storable(completion.choices[0].message.content or "")
    usage = completion.usage
    return StructuredReply(
        text=text,
        tokens_in=usage.prompt_tokens if usage else _estimate(json.dumps(_texts(sent))),
        tokens_out=usage.completion_tokens if usage else _estimate(text),
        cut=True,
    )


def _protocol(schema: dict[str, Any]) -> str:
    template = Template(PROTOCOL.read_text(encoding="utf-8"))
    return template.substitute(schema=json.dumps(schema, ensure_ascii=False))


def _answer(raw: AIMessage, sent: Sequence[dict[str, Any]]) -> StructuredReply:
    text = make_storable(_object_text(raw))
    usage: Any = raw.usage_metadata or {}
    ended = str(raw.response_metadata.get("finish_reason", "")).lower()
    return StructuredReply(
        text=text,
        tokens_in=usage.get("input_tokens") or _estimate(json.dumps(_texts(sent))),
        tokens_out=usage.get("output_tokens") or _estimate(text),
        cut=ended in ENDED_BY_LIMIT,
    )


def _object_text(raw: AIMessage) -> str:
    """The object as text: a tool call's arguments, or else what was said."""
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
