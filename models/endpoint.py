"""A language model of a profile, called by the strongest method that its server supports."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from domain.errors import ModelError, NoReply, Refused, SetupError
from models.chat_models import ChatFactory, key_variable, make_chat_model, redact_key
from models.retries import UNPAID, CallFailed, call_with_retries
from models.secrets import redacted_url
from models.specs import ChatSpec, Structure
from models.structured import REFUSAL, OnText, StructuredReply, request, structures_from

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

UNSUPPORTED = frozenset({400, 422, 501})
"""Statuses with which servers refuse a method that they do not know."""
TOKEN_STEP = 256
PROBE_TOKENS = 16
KEY_REFUSED = frozenset({401, 403})
NOT_PAID, UNKNOWN = 402, 404
_KEY_REFUSED = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired)", re.IGNORECASE)
"""Google refuses a key with status 400."""
_UNKNOWN = re.compile(r"model_not_found|invalid model|unknown model", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"unsupported|not support|only the default", re.IGNORECASE)
_REFUSED = re.compile(rf"{REFUSAL}|^ContentFilterFinishReasonError|content_filter")


class Endpoint:
    """The clients of one model, by temperature."""

    def __init__(self, spec: ChatSpec, factory: ChatFactory = make_chat_model) -> None:
        self.spec = spec
        self.structure: Structure = spec.structure
        self.streams, self._joined, self._heated = True, False, True
        self._factory = factory
        self._models: dict[tuple[float | None, int], BaseChatModel] = {}

    def check(self) -> None:
        """Make the client without calling the server.

        Raises:
            SetupError: A package, a key or a model file is missing.
        """
        self._model(self.spec.temperature)

    def send(
        self,
        messages: Sequence[dict[str, Any]],
        schema: dict[str, Any],
        temperature: float | None,
        timeout_s: float,
        protocol: str = "",
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> StructuredReply:
        """Send a request by the strongest method that the server supports, and remember which.

        ``protocol`` is how to answer where the server takes text only, if not as a JSON object;
        ``max_tokens`` is a limit below the profile's. ``on_text`` is called with the reply as it
        grows, from another thread, and no more once this returns.

        Raises:
            NoReply: The server is away or fails, or the model refuses (``Refused``).
            SetupError: A package or key is missing, or the key or the model's name is refused.
        """
        model = self._model(temperature, max_tokens)
        probe = partial(self._model(temperature, PROBE_TOKENS).invoke, "Say ok.")
        deadline = time.monotonic() + timeout_s
        refusal: CallFailed | None = None
        for structure, listener in self._attempts(on_text):
            with _until_returned(listener) as guarded:
                max_characters = self.spec.max_characters
                call = partial(
                    request, model, structure, messages, schema, protocol, guarded, max_characters
                )
                call = partial(call, joined=self._joined)
                try:
                    answer = call_with_retries(call, deadline, self.spec.retries, probe)
                except CallFailed as failure:
                    joined, heated = self._joined, self._heated
                    # Some servers take no two turns of one role, some models no temperature.
                    self._joined = joined or "alternate" in failure.reply
                    hot = "temperature" in failure.reply and _UNSUPPORTED.search(failure.reply)
                    self._heated = heated and not hot
                    if (joined, heated) != (self._joined, self._heated):
                        return self.send(
                            messages, schema, temperature, timeout_s, protocol, max_tokens, on_text
                        )
                    error = server_error(self.spec, failure)
                    # Another method might be accepted.
                    unknown_way = isinstance(failure.__cause__, NotImplementedError)
                    unsupported = unknown_way or failure.status in UNSUPPORTED
                    if not unsupported or type(error) is not NoReply:
                        raise error from None  # It has the key, maybe.
                    refusal = refusal or failure
                    continue
            self.structure, self.streams = structure, self.streams and listener is on_text
            # A server may say in its reply what it was sent.
            return replace(answer, text=redact_key(answer.text, self.spec))
        # Whatever was wrong, it was not the method: the first refusal says it best.
        refusal = refusal or CallFailed("the server takes no request")
        raise server_error(self.spec, refusal) from None

    def _attempts(self, on_text: OnText | None) -> Iterator[tuple[Structure, OnText | None]]:
        """Yield the methods to try, strongest first, each streamed first if that is asked for."""
        for structure in structures_from(self.structure):
            if on_text is not None and self.streams:
                yield structure, on_text
            yield structure, None

    def _model(self, temperature: float | None, max_tokens: int | None = None) -> BaseChatModel:
        # Limits are rounded down to coarse steps below the profile's, so that clients are few.
        if max_tokens is None or max_tokens >= self.spec.max_tokens:
            limit = self.spec.max_tokens
        else:
            over = max_tokens % TOKEN_STEP if max_tokens > TOKEN_STEP else 0
            limit = max(1, max_tokens - over)
        key = temperature if self._heated else None, limit
        if key not in self._models:
            spec = self.spec.model_copy(update={"max_tokens": key[1]})
            self._models[key] = self._factory(spec, key[0])
        return self._models[key]


def server_error(spec: ChatSpec, failure: CallFailed) -> ModelError | SetupError:
    """Return the error that tells a person what a failed call means, and what to do."""
    name, status, reply = spec.model, failure.status, failure.reply
    if status in KEY_REFUSED or _KEY_REFUSED.search(reply):
        variable = key_variable(spec) or "the key"
        return SetupError(f"{name} does not let us in ({status}): check {variable}")
    if status == NOT_PAID or UNPAID.search(reply):
        return SetupError(f"{name} is not paid for ({status}): see the account of its key")
    if spec.base_url:
        name = f"{name} at {redacted_url(spec.base_url)}"
    if status == UNKNOWN or _UNKNOWN.search(reply):
        return SetupError(f"{name} is not there ({status}): check model and base_url")
    if _REFUSED.search(reply):
        return Refused(f"{name} refuses: {redact_key(str(failure), spec)}")
    return NoReply(f"{name} did not answer: {redact_key(str(failure), spec)}")


@contextmanager
def _until_returned(on_text: OnText | None) -> Iterator[OnText | None]:
    """Yield ``on_text`` muted after the call returns: an abandoned request may still go on."""
    if on_text is None:
        yield None
        return
    lock, over = threading.Lock(), threading.Event()

    def call_until_over(text: str) -> None:
        with lock:
            if not over.is_set():
                on_text(text)

    try:
        yield call_until_over
    finally:
        with lock:
            over.set()
