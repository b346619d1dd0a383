"""Structured calls of language models: each is validated, recorded, and can be replayed.

One call of :meth:`StructuredChat.ask` is one record, whatever it took: retries of a busy server,
or another method of holding the model to a schema (``models.structured``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from domain import faults
from domain.calls import CallRecord
from domain.errors import ModelError, ReplayMiss
from domain.words import marked
from models.endpoint import Endpoint
from models.messages import Message, is_video, request_hash, to_langchain, to_record
from models.specs import IN_PROCESS, OPENAI, ChatSpec, cost_usd
from models.structured import (
    OnText,
    StructuredReply,
    is_complete_object,
    parse_plain_text,
    plain_text_protocol,
    read_object,
)
from store.files import NoFreeSlot, Slots
from telemetry import tracing
from telemetry.tracing import Value

T = TypeVar("T", bound=BaseModel)

SHOWN = 160


Sink = Callable[[CallRecord], None]
"""Called with every call that was made, once it is over."""

OnRecord = Callable[[CallRecord], None]

Replay = Callable[[str], CallRecord | None]
"""Looks a request hash up in the record; None if it is not there."""


class StructuredChat:
    """A language model that replies with typed values.

    Args:
        profile: The profile's name, for the record.
        sink: Called with every call.
        replay: Serves recorded calls; with it, no call is made at all.
        live: With ``replay``, calls that the record lacks are made.
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
        self._slots = Slots(f"{spec.model} {spec.base_url}", spec.at_once)

    @property
    def model(self) -> str:
        """The model's name in the profile."""
        return self._endpoint.spec.model

    @property
    def sees(self) -> bool:
        """Whether the model accepts images."""
        return self._endpoint.spec.images

    @property
    def in_process(self) -> bool:
        """Whether the model runs in this process, held to any schema by a grammar."""
        return self._endpoint.spec.provider == IN_PROCESS

    def check(self) -> None:
        """Check that the model could be called, before any work that needs it; makes no call.

        Raises:
            SetupError: A package, a key or a model file is missing.
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
        labels: Sequence[str] = (),
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> T:
        """Ask for a value of type ``schema``.

        Args:
            messages: The turns so far; the images go with the last user turn.
            schema: A pydantic model; its docstring and field descriptions reach the model.
            purpose: What the call is for (``plan``, ``act``, ...), for the record.
            temperature: None: the profile's, else the provider's default.
            timeout_s: For all of it, retries included; None: the profile's.
            images: JPEG or PNG files, or MP4.
            labels: What each image is called, sent as a text before it; empty: nothing.
            max_tokens: A limit below the profile's.
            on_text: Called with the reply as it grows, from another thread; not for a replayed one.

        Raises:
            ModelError: No reply in time, an error, or a reply that does not fit.
            ReplayMiss: The request is not in the record that is replayed.
            SetupError: A package or a key is missing.
        """
        spec = self._endpoint.spec
        if images and not spec.images:
            raise ModelError(f"{spec.model} cannot look at images: describe them in words")
        if any(map(is_video, images)) and not spec.video:
            raise ModelError(f"{spec.model} cannot watch a video: show it frames")
        used_temperature = spec.temperature if temperature is None else temperature
        plain = to_record(messages, images, labels)
        json_schema = schema.model_json_schema()
        digest = request_hash(spec.model, plain, json_schema, used_temperature)
        found = self._replay(digest) if self._replay is not None else None
        if found is not None or not self._live:
            return self._replayed(found, digest, purpose, schema)
        blank = CallRecord(digest, purpose, self._profile, spec.model, tuple(plain))
        limit = spec.timeout_s if timeout_s is None else timeout_s
        send = partial(
            self._endpoint.send,
            to_langchain(messages, images, labels, video_urls=spec.provider == OPENAI),
            json_schema,
            used_temperature,
            limit,
            plain_text_protocol(schema),
            max_tokens,
            on_text,
        )
        with traced_call(blank, spec, used_temperature, max_tokens) as on_record:
            return self._asked(blank, schema, send, limit, on_record)

    def _asked(
        self,
        blank: CallRecord,
        schema: type[T],
        send: Callable[[], StructuredReply],
        limit_s: float,
        on_record: OnRecord,
    ) -> T:
        started = time.monotonic()
        try:
            spec = self._endpoint.spec
            try:
                with self._slots.acquire(limit_s):
                    faults.fault_point(faults.FaultPoint.CALL_SENDING)
                    answer = send()
            except NoFreeSlot as error:
                raise ModelError(
                    f"{spec.model} was busy with {spec.at_once} other calls of this machine for "
                    f"{limit_s:g} s: see at_once in the profile"
                ) from error
            faults.fault_point(faults.FaultPoint.CALL_ANSWERED)
        except ModelError as error:
            self._record(replace(blank, error=str(error), ms=_ms_since(started)), on_record)
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
            if answer.too_long:
                most = self._endpoint.spec.max_characters
                raise ModelError(
                    f"the reply of {self.model} is longer than {most} characters: say it in fewer "
                    "words, or raise max_characters in the profile"
                )
            if answer.cut and not is_complete_object(answer.text):
                raise ModelError(
                    f"the reply of {self.model} was cut off after {answer.tokens_out} tokens: say "
                    "it in fewer words, or raise max_tokens in the profile"
                )
            value = read_value(answer.text, schema)
        except ModelError as error:
            self._record(replace(record, error=str(error)), on_record)
            raise
        self._record(record, on_record)
        return value

    def _replayed(self, found: CallRecord | None, digest: str, purpose: str, schema: type[T]) -> T:
        if found is None:
            raise ReplayMiss(
                f"the record has no call for {purpose!r} to {self.model} (request {digest[:12]}): "
                "it was recorded with other settings, prompts or videos"
            )
        if found.error is not None or found.reply is None:
            raise ModelError(found.error or marked("the recorded call has no reply"))
        return read_value(str(found.reply["text"]), schema)

    def _record(self, record: CallRecord, on_record: OnRecord) -> None:
        on_record(record)
        if self._sink is not None:
            self._sink(record)
            faults.fault_point(faults.FaultPoint.CALL_RECORDED)


@contextmanager
def traced_call(
    blank: CallRecord, spec: ChatSpec, temperature: float | None, max_tokens: int | None
) -> Iterator[OnRecord]:
    """Surround a call with a span; the function given takes the call's record once it is over."""
    fields: dict[str, Value] = {
        "model": spec.model_name,
        "provider": spec.provider,
        "purpose": blank.purpose,
        "max_tokens": min(max_tokens or spec.max_tokens, spec.max_tokens),
    }
    if temperature is not None:
        fields["temperature"] = temperature
    with tracing.span(tracing.Work.CALL, "model call", **fields) as span:

        def add_to_span(call: CallRecord) -> None:
            span.fields |= {"tokens_in": call.tokens_in, "tokens_out": call.tokens_out}
            span.content = lambda: _message_contents(call)

        yield add_to_span


def _message_contents(call: CallRecord) -> dict[str, str]:
    """Return the messages of a call in JSON, as the conventions for generative AI have them."""
    sent = [_turn(str(one["role"]), one["content"]) for one in call.messages]
    received = [_turn("assistant", call.reply["text"])] if call.reply is not None else []
    return {"input": json.dumps(sent), "output": json.dumps(received)}


def _turn(role: str, content: Any) -> dict[str, Any]:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    typed = ({"type": p["type"], "content": p.get("text", p.get("sha256"))} for p in parts)
    return {"role": role, "parts": list(typed)}


def read_value(text: str, schema: type[T]) -> T:
    """Read a value from a model's reply, whose JSON may be broken, or which may be plain text.

    Raises:
        ModelError: There is none, or it does not fit; says which field is wrong and how.
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
        raise ModelError(f"the answer does not fit {schema.__name__}: {wrong}") from error
    except ValueError as error:
        shown = " ".join(text.split())[:SHOWN]
        raise ModelError(f"the answer cannot be read: {error} ({shown!r})") from error


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
