"""Asking a language model for a value of a given type, with every call recorded.

One call of :meth:`StructuredChat.ask` is one record, whatever it took: retries of a busy server,
or a weaker way of asking (``models.structured``) where the server refuses a stronger one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from domain import faults
from domain.errors import ModelError, ReplayMiss
from models.endpoint import Endpoint
from models.json_repair import is_complete_object, read_object
from models.messages import Message, request_hash, to_langchain, to_record
from models.prices import cost_usd
from models.profile import IN_PROCESS, ChatSpec
from models.reply_schema import parse_plain_text, plain_text_protocol, title_of
from models.slots import NoFreeSlot, Slots
from models.structured import OnText, StructuredReply
from telemetry import tracing
from telemetry.ids import Value

T = TypeVar("T", bound=BaseModel)

SHOWN = 160


@dataclass(frozen=True)
class ChatReply(Generic[T]):
    """A model's answer. ``cost_usd`` is 0 where the model's price is not known."""

    value: T
    tokens_in: int
    tokens_out: int
    cost_usd: float
    ms: int
    model: str


@dataclass(frozen=True)
class CallRecord:
    """A call as it was made; ``messages`` and ``reply`` are plain JSON.

    ``reply`` is ``{"text": what the model said}``, None where it said nothing. ``error`` is set
    where the call failed, or where what was said does not fit.
    """

    request_hash: str
    purpose: str
    profile: str
    model: str
    messages: tuple[Mapping[str, Any], ...]
    reply: Mapping[str, Any] | None
    error: str | None
    tokens_in: int
    tokens_out: int
    cost_usd: float
    ms: int


@dataclass(frozen=True)
class Recorded:
    """What the record holds for a request: what came of it and what it took."""

    reply: Mapping[str, Any] | None
    error: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    ms: int = 0


Sink = Callable[[CallRecord], None]
"""Is given every call that was made, once it is over."""

Told = Callable[[CallRecord], None]

Replay = Callable[[str], Recorded | None]
"""Looks a request hash up in the record; None where it is not there."""


class StructuredChat:
    """A language model that answers with values.

    Args:
        endpoint: the model.
        profile: the profile's name, for the record.
        sink: is given every call.
        replay: serves recorded calls; with it, no call is made at all.
        live: with ``replay``, calls that the record lacks are made.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        profile: str,
        sink: Sink | None = None,
        replay: Replay | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._profile = profile
        self._sink = sink
        self._replay = replay
        self._live = live or replay is None
        spec = endpoint.spec
        self._places = Slots(f"{spec.model} {spec.base_url}", spec.at_once)

    @property
    def model(self) -> str:
        """The model's name as the profile has it."""
        return self._endpoint.spec.model

    @property
    def sees(self) -> bool:
        """Whether the model can look at images."""
        return self._endpoint.spec.images

    @property
    def in_process(self) -> bool:
        """Whether the model runs in this process, held to any form by grammar."""
        return self._endpoint.spec.provider == IN_PROCESS

    def check(self) -> None:
        """See that the model could be asked, before any work that needs it. Makes no call.

        Raises:
            SetupError: a package, a key or a model file is missing.
        """
        if self._live:
            self._endpoint.check()

    def ask(
        self,
        messages: Sequence[Message],
        schema: type[T],
        *,
        purpose: str,
        temperature: float | None = None,
        timeout_s: float | None = None,
        images: Sequence[bytes] = (),
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> ChatReply[T]:
        """Ask for a value of type ``schema``.

        Args:
            messages: the turns so far; the last user turn takes the images.
            schema: a pydantic model; its docstring and field descriptions reach the model.
            purpose: what the call is for (``plan``, ``act``, ...), for the record.
            temperature: None: the profile's, else the provider's own.
            timeout_s: seconds for all of it, retries included; None: the profile's.
            images: JPEG or PNG files.
            max_tokens: ends the answer sooner than the profile does.
            on_text: is told the answer as it grows, from another thread; no recorded one.

        Raises:
            ModelError: no answer in time, an error for one, or an answer that does not fit.
            ReplayMiss: the request is not in the record that is replayed.
            SetupError: a package or a key is missing.
        """
        spec = self._endpoint.spec
        if images and not spec.images:
            raise ModelError(f"{spec.model} cannot look at images: describe them in words")
        heat = spec.temperature if temperature is None else temperature
        plain = to_record(messages, images)
        form = schema.model_json_schema()
        digest = request_hash(spec.model, plain, form, heat)
        found = self._replay(digest) if self._replay is not None else None
        if found is not None or not self._live:
            return self._replayed(found, digest, purpose, schema)
        blank = CallRecord(
            digest, purpose, self._profile, spec.model, tuple(plain), None, None, 0, 0, 0.0, 0
        )
        limit = spec.timeout_s if timeout_s is None else timeout_s
        send = partial(
            self._endpoint.send,
            to_langchain(messages, images),
            form,
            heat,
            limit,
            plain_text_protocol(schema),
            max_tokens,
            on_text,
        )
        with traced_call(blank, spec, heat, max_tokens) as told:
            return self._asked(blank, schema, send, limit, told)

    def _asked(
        self,
        blank: CallRecord,
        schema: type[T],
        send: Callable[[], StructuredReply],
        limit_s: float,
        told: Told,
    ) -> ChatReply[T]:
        started = time.monotonic()
        try:
            answer = self._in_turn(send, limit_s)
        except ModelError as error:
            self._record(replace(blank, error=str(error), ms=_ms_since(started)), told)
            raise
        record = replace(
            blank,
            reply={"text": answer.text},
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            cost_usd=cost_usd(self._endpoint.spec, answer.tokens_in, answer.tokens_out),
            ms=_ms_since(started),
        )
        try:
            value = self._value(answer, schema)
        except ModelError as error:
            self._record(replace(record, error=str(error)), told)
            raise
        self._record(record, told)
        return _reply(value, record, record.model)

    def _in_turn(self, send: Callable[[], StructuredReply], limit_s: float) -> StructuredReply:
        spec = self._endpoint.spec
        try:
            with self._places.acquire(limit_s):
                faults.fault_point(faults.FaultPoint.CALL_SENDING)
                answer = send()
        except NoFreeSlot as error:
            raise ModelError(
                f"{spec.model} was busy with {spec.at_once} other calls of this machine for "
                f"{limit_s:g} s: see at_once in the profile"
            ) from error
        faults.fault_point(faults.FaultPoint.CALL_ANSWERED)
        return answer

    def _value(self, answer: StructuredReply, schema: type[T]) -> T:
        """The value in an answer; where it was cut off, only what is whole is trusted."""
        if answer.too_long:
            most = self._endpoint.spec.max_characters
            raise ModelError(
                f"the reply of {self.model} is longer than {most} characters: say it in fewer "
                "words, or raise max_characters in the profile"
            )
        if answer.cut and not is_complete_object(answer.text):
            raise ModelError(
                f"the reply of {self.model} was cut off after {answer.tokens_out} tokens: say it "
                "in fewer words, or raise max_tokens in the profile"
            )
        return read_value(answer.text, schema)

    def _replayed(
        self, found: Recorded | None, digest: str, purpose: str, schema: type[T]
    ) -> ChatReply[T]:
        if found is None:
            raise ReplayMiss(
                f"the record has no call for {purpose!r} to {self.model} (request {digest[:12]}): "
                "it was recorded with other settings, prompts or videos"
            )
        if found.error is not None or found.reply is None:
            raise ModelError(found.error or "the recorded call has no reply")
        return _reply(read_value(str(found.reply["text"]), schema), found, self.model)

    def _record(self, record: CallRecord, told: Told) -> None:
        told(record)
        if self._sink is not None:
            self._sink(record)
            faults.fault_point(faults.FaultPoint.CALL_RECORDED)


@contextmanager
def traced_call(
    blank: CallRecord, spec: ChatSpec, temperature: float | None, max_tokens: int | None
) -> Iterator[Told]:
    """Observes a call; is given its record once it is over, to tell what it took."""
    asked: dict[str, Value] = {
        "model": spec.model_name,
        "provider": spec.provider,
        "purpose": blank.purpose,
        "max_tokens": min(max_tokens or spec.max_tokens, spec.max_tokens),
    }
    if temperature is not None:
        asked["temperature"] = temperature
    with tracing.span(tracing.Work.CALL, "model call", **asked) as span:

        def tell(call: CallRecord) -> None:
            span.fields |= {"tokens_in": call.tokens_in, "tokens_out": call.tokens_out}
            span.content = lambda: _words(call)

        yield tell


def _words(call: CallRecord) -> dict[str, str]:
    """What was said in a call, each way as the conventions for generative AI have it in JSON."""
    asked = [_turn(str(one["role"]), one["content"]) for one in call.messages]
    said = [_turn("assistant", call.reply["text"])] if call.reply is not None else []
    return {"input": json.dumps(asked), "output": json.dumps(said)}


def _turn(role: str, content: Any) -> dict[str, Any]:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    told = ({"type": p["type"], "content": p.get("text", p.get("sha256"))} for p in parts)
    return {"role": role, "parts": list(told)}


def read_value(text: str, schema: type[T]) -> T:
    """The value in a model's answer, mended where its JSON is broken, or given in plain lines.

    Raises:
        ModelError: there is none, or it does not fit; says which field is wrong and how.
    """
    try:
        return _read(text, read_object, schema)
    except ModelError:
        fields = parse_plain_text(text, schema)
        if fields is None:
            raise
    return _read(text, lambda _: fields, schema)


def _read(text: str, fields: Callable[[str], dict[str, Any]], schema: type[T]) -> T:
    try:
        return schema.model_validate(fields(text))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'it'}: {item['msg']}"
            for item in error.errors()[:5]
        )
        raise ModelError(f"the answer does not fit {title_of(schema)}: {wrong}") from error
    except ValueError as error:
        shown = " ".join(text.split())[:SHOWN]
        raise ModelError(f"the answer cannot be read: {error} ({shown!r})") from error


def _reply(value: T, took: CallRecord | Recorded, model: str) -> ChatReply[T]:
    return ChatReply(value, took.tokens_in, took.tokens_out, took.cost_usd, took.ms, model)


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
