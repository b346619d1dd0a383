"""The three methods of holding a model to a schema, and reading its reply in each of them.

The library ``json_repair`` reads what is not quite JSON; what was cut off is closed where it
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from json_repair import repair_json
from pydantic import BaseModel, ConfigDict

from domain.settings import IMAGE_TOKENS, VIDEO_SECOND_TOKENS
from domain.words import make_storable
from models.specs import Structure

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.runnables import Runnable


STRUCTURES: tuple[Structure, ...] = ("json_schema", "tools", "text")
PROTOCOL = Path(__file__).with_name("protocol.md")
METHODS = {"json_schema": "json_schema", "tools": "function_calling"}
CHARACTERS_A_TOKEN = 4
_FILE_TOKENS = {
    "image_url": IMAGE_TOKENS,
    **dict.fromkeys(("video", "video_url"), 30 * VIDEO_SECOND_TOKENS),
}
"""Tokens of a file by the type of its part, where a server does not count; videos are 30 s long."""
CUT_OFF = "LengthFinishReasonError"
ENDED_BY_LIMIT = frozenset({"length", "max_tokens"})
"""Finish reasons of providers for a reply that the limit on tokens cut off."""
ENDED_FOR_SAFETY = frozenset(
    {"content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii", "refusal"}
)
REFUSAL = "the model refuses: "

GROWTH_PARTS = 32
"""A streamed reply is reported again once it is longer by one part in so many."""
_NO_TOOL_CALL: Any = object()

OnText = Callable[[str], None]
"""Called with all of a reply so far, now and then while it is streamed, and at the end."""


@dataclass(frozen=True)
class StructuredReply:
    """A model's reply: the text of the object it gave, and the tokens it took.

    ``cut``: the provider's limit on tokens ended it. ``too_long``: our limit on characters did.
    """

    text: str
    tokens_in: int
    tokens_out: int
    cut: bool = False
    too_long: bool = False


def structures_from(structure: Structure) -> tuple[Structure, ...]:
    """Return ``structure`` and those to fall back to, strongest first."""
    return STRUCTURES[STRUCTURES.index(structure) :]


def request(
    model: BaseChatModel,
    structure: Structure,
    messages: Sequence[dict[str, Any]],
    schema: dict[str, Any],
    protocol: str = "",
    on_text: OnText | None = None,
    max_characters: int | None = None,
    *,
    joined: bool = False,
) -> StructuredReply:
    """Send one request, holding the model to ``schema`` by the method ``structure``.

    Args:
        protocol: How to answer as text, where that is not a JSON object.
        on_text: With it the reply is streamed.
        max_characters: A longer reply is read no further; None: no limit.
        joined: Turns of one role that follow each other are sent as one.

    Raises:
        NotImplementedError: The client knows no such method.
        Exception: Whatever else the client raises.
    """
    sent = list(messages)
    if structure == "text":
        if not protocol:
            template = Template(PROTOCOL.read_text(encoding="utf-8"))
            protocol = template.substitute(schema=json.dumps(schema, ensure_ascii=False))
        sent.append({"role": "user", "content": protocol})
    if joined:
        sent = _in_turns(sent)
    if structure == "text":
        if on_text:
            return _stream_reply(model, sent, on_text, max_characters)
        return _truncate(_reply_of_message(model.invoke(sent), sent), max_characters)
    method = METHODS[structure]
    try:
        if on_text:
            return _stream_reply(
                _held_to_schema(model, schema, method), sent, on_text, max_characters
            )
        chain = model.with_structured_output(schema, method=method, include_raw=True)
        outcome: Any = chain.invoke(sent)
    except Exception as error:
        # Some clients raise where the limit on tokens cut a reply off: what was said is in there.
        partial = getattr(error, "completion", None)
        if type(error).__name__ != CUT_OFF or partial is None:
            raise
        text = make_storable(partial.choices[0].message.content or "")
        usage = partial.usage
        reply_of_completion = StructuredReply(
            text=text,
            tokens_in=usage.prompt_tokens if usage else _sent_tokens(sent),
            tokens_out=usage.completion_tokens if usage else _estimate_tokens(text),
            cut=True,
        )
        return _truncate(reply_of_completion, max_characters)
    return _truncate(_reply_of_message(outcome["raw"], sent), max_characters)


def _in_turns(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join turns of one role that follow each other, which some servers refuse."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if not turns or turns[-1]["role"] != message["role"]:
            turns.append(message)
            continue
        contents = (turns[-1]["content"], message["content"])
        parts = [[{"type": "text", "text": c}] if isinstance(c, str) else c for c in contents]
        joined = (
            [part for some in parts for part in some]
            if list in map(type, contents)
            else "\n\n".join(contents)
        )
        turns[-1] = {"role": message["role"], "content": joined}
    return turns


def _require_not_refused(message: AIMessage) -> None:
    """Raise what a provider says of a reply that it withholds for safety, if it does."""
    known = message.response_metadata
    ended = known.get("finish_reason") or known.get("stop_reason") or ""
    blocked = (known.get("prompt_feedback") or {}).get("block_reason")
    why = message.additional_kwargs.get("refusal") or getattr(blocked, "name", blocked)
    if not why and str(ended).lower() in ENDED_FOR_SAFETY:
        why = ended
    if why:
        raise RuntimeError(f"{REFUSAL}{why}")


def _held_to_schema(
    model: BaseChatModel, schema: dict[str, Any], method: str
) -> Runnable[Any, Any]:
    """Return the model held to ``schema``, without LangChain's parser behind it.

    LangChain's parsers parse the whole text again with each chunk; ours parses it once.

    Raises:
        NotImplementedError: The client's chain cannot be taken apart.
    """
    # LangChain is slow to import, and replays do without.
    from langchain_core.runnables import RunnableSequence

    chain = model.with_structured_output(schema, method=method)
    if not isinstance(chain, RunnableSequence):
        raise NotImplementedError(f"{type(model).__name__} cannot stream structured replies")
    return chain.first


def _stream_reply(
    model: Runnable[Any, Any],
    sent: Sequence[dict[str, Any]],
    on_text: OnText,
    max_characters: int | None,
) -> StructuredReply:
    """Return the whole reply, reported as it grows, read up to ``max_characters``.

    Raises:
        ConnectionError: The server sent nothing.
    """
    reply = StreamedReply(on_text, max_characters)
    # LangChain streams by generators: closing one ends the connection.
    stream = cast("Generator[Any, None, None]", model.stream(list(sent)))
    with closing(stream) as chunks:
        for chunk in chunks:
            reply.add(chunk)
            if reply.too_long:
                break
    if not reply.started:
        raise ConnectionError("the server ended the reply before it began")
    return reply.answer(sent)


class StreamedReply:
    """A streamed reply, joined once, so that time and space are linear in its length.

    Args:
        on_text: Called with the text so far whenever it has grown by a part of its length, and at
            the end, so that all it is called with grows with the length of the reply too.
        max_characters: Limit on its length; None: no limit.
    """

    def __init__(self, on_text: OnText, max_characters: int | None = None) -> None:
        self._on_text, self._max_characters = on_text, max_characters
        self._content: list[str] = []
        self._arguments: list[str] = []
        self._call: Any = _NO_TOOL_CALL
        self._length = self._reported = 0
        self._usage: Any = {}
        self._ended = ""
        self.started = False

    @property
    def too_long(self) -> bool:
        """Whether it is longer than ``max_characters``."""
        return self._max_characters is not None and self._length > self._max_characters

    def add(self, chunk: AIMessageChunk) -> None:
        self.started = True
        _require_not_refused(chunk)
        self._add_text(str(chunk.text), self._content)
        for call in getattr(chunk, "tool_call_chunks", ()):
            # Of the first tool call; one without an index comes in one chunk.
            index = call["index"]
            if self._call is _NO_TOOL_CALL:
                self._call = index
            elif index is None or index != self._call:
                continue
            self._add_text(call["args"] or "", self._arguments)
        # Clients report tokens with each chunk, or all with the last.
        if more := getattr(chunk, "usage_metadata", None):
            self._usage = {
                name: self._usage.get(name, 0) + (more.get(name) or 0)
                for name in ("input_tokens", "output_tokens")
            }
        self._ended = str(chunk.response_metadata.get("finish_reason") or self._ended)
        if (self._length - self._reported) * GROWTH_PARTS > self._reported:
            self._report()

    def answer(self, sent: Sequence[dict[str, Any]]) -> StructuredReply:
        if self._reported < self._length:
            self._report()
        text = make_storable(self._text())
        return StructuredReply(
            text=text[: self._max_characters] if self.too_long else text,
            tokens_in=self._usage.get("input_tokens") or _sent_tokens(sent),
            tokens_out=self._usage.get("output_tokens") or _estimate_tokens(text),
            cut=self._ended.lower() in ENDED_BY_LIMIT,
            too_long=self.too_long,
        )

    def _add_text(self, text: str, parts: list[str]) -> None:
        if text:
            parts.append(text)
            self._length += len(text)

    def _text(self) -> str:
        return "".join(self._content if self._call is _NO_TOOL_CALL else self._arguments)

    def _report(self) -> None:
        self._reported = self._length
        self._on_text(make_storable(self._text()))


def _truncate(answer: StructuredReply, max_characters: int | None) -> StructuredReply:
    if max_characters is None or len(answer.text) <= max_characters:
        return answer
    return replace(answer, text=answer.text[:max_characters], too_long=True)


def _reply_of_message(raw: AIMessage, sent: Sequence[dict[str, Any]]) -> StructuredReply:
    _require_not_refused(raw)
    # A tool call's arguments, or else the content.
    if raw.tool_calls:
        said = json.dumps(raw.tool_calls[0]["args"], ensure_ascii=False)
    elif raw.invalid_tool_calls:
        said = raw.invalid_tool_calls[0]["args"] or ""
    else:
        said = str(raw.text)
    text = make_storable(said)
    usage: Any = raw.usage_metadata or {}
    ended = str(raw.response_metadata.get("finish_reason", "")).lower()
    return StructuredReply(
        text=text,
        tokens_in=usage.get("input_tokens") or _sent_tokens(sent),
        tokens_out=usage.get("output_tokens") or _estimate_tokens(text),
        cut=ended in ENDED_BY_LIMIT,
    )


def _sent_tokens(sent: Sequence[dict[str, Any]]) -> int:
    """Estimate the tokens of messages; those of images do not depend on their bytes."""
    contents = [message["content"] for message in sent]
    texts = [
        content if isinstance(content, str) else [part.get("text", "") for part in content]
        for content in contents
    ]
    parts = [part for content in contents if not isinstance(content, str) for part in content]
    files = sum(_FILE_TOKENS.get(part.get("type", ""), 0) for part in parts)
    return _estimate_tokens(json.dumps(texts)) + files


def _estimate_tokens(text: str) -> int:
    return max(1, len(text) // CHARACTERS_A_TOKEN)


# How a reply is described to a model: a class as a JSON schema, or plain text.
#
# Pydantic takes title and description of a schema from a class's name and docstring, which models
# read: docstrings of replies are part of the prompts.


class StrictReply(BaseModel):
    """Base of replies in which unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


@runtime_checkable
class PlainTextFormat(Protocol):
    """A reply that may also be given as plain text, by models that keep to no JSON."""

    @classmethod
    def plain_text_protocol(cls) -> str:
        """Return how to answer, for a server that holds its model to no schema."""

    @classmethod
    def parse_plain_text(cls, text: str) -> dict[str, Any] | None:
        """Return the fields found in such an answer; None if it is none."""


def plain_text_protocol(schema: type[BaseModel]) -> str:
    """Return how to answer in plain text; "" where the reply has no such form."""
    return schema.plain_text_protocol() if isinstance(schema, PlainTextFormat) else ""


def parse_plain_text(text: str, schema: type[BaseModel]) -> dict[str, Any] | None:
    """Return the fields that ``text`` gives as plain text; None if it gives none."""
    return schema.parse_plain_text(text) if isinstance(schema, PlainTextFormat) else None


# The library takes time by the square of some texts: 5 s for 16,000 characters of ``["["["``. A
# reply of 8,000 tokens is within this.
MOST_REPAIRED = 32_000


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, repaired if need be.

    Args:
        text: A model's reply. Thoughts up to a ``</think>`` are skipped.

    Raises:
        ValueError: There is no object in it, or one nested too deeply; or it is no JSON and longer
            than ``MOST_REPAIRED``.
    """
    answer = _after_thoughts(text)
    start = answer.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in the answer")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(answer, start)
    except (ValueError, RecursionError):
        value = _repaired(answer[start:])
    return dict(_storable(value))


# Models wrap objects in prose or code fences, leave trailing commas, quote with single quotes,
# forget to escape, write Python's ``True`` and ``None``, or stop in the middle.
def _repaired(text: str) -> dict[str, Any]:
    """Return the first object of a text that is not quite JSON."""
    if len(text) > MOST_REPAIRED:
        raise ValueError("the answer is no JSON, and too long to be repaired")
    try:
        found = repair_json(text, return_objects=True, skip_json_loads=True)
    except RecursionError as error:
        raise ValueError("the answer's JSON is nested too deeply") from error
    # What follows the object is read as well, into a list.
    values = found if isinstance(found, list) else [found]
    return next((one for one in values if isinstance(one, dict)), {})


def _after_thoughts(text: str) -> str:
    """Return ``text`` from the end of the thoughts on; a ``</think>`` in an object is no end."""
    before, _, after = text.rpartition("</think>")
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return after
    return text if end > len(before) else after


def is_complete_object(text: str) -> bool:
    """Check whether there is an object in ``text`` that needs no repair."""
    try:
        json.JSONDecoder(strict=False).raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return False
    return True


def _storable(value: Any) -> Any:
    match value:
        case str():
            return make_storable(value)
        case list():
            return [_storable(one) for one in value]
        case dict():
            return {make_storable(str(name)): _storable(one) for name, one in value.items()}
    return value


def latest_text(text: str) -> str:
    """Return the text that a streamed reply is writing at the moment, for people to read.

    That is the last text of its JSON object, else its last line.
    """
    if "{" not in text:
        return text.rstrip().rpartition("\n")[2]
    try:
        return _last(read_object(text))
    except ValueError:
        return ""


def _last(value: Any) -> str:
    match value:
        case dict():
            return _last(list(value.values())[-1]) if value else ""
        case list():
            return _last(value[-1]) if value else ""
        case str():
            return value
    return ""
