"""A language model of a profile: its client, called by the strongest method that it supports.

Keys come from the environment or the keyring. A small model may run in this process: then
llama.cpp's own server serves it, behind OpenAI's protocol.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import ModelError, NoReply, Refused, SetupError
from domain.words import marked
from models.keys_and_packages import (
    SERVICE,
    extra_of,
    read_key,
    redact,
    redacted_url,
    secrets_of_url,
)
from models.onnx import THREADS
from models.retries import UNPAID, CallFailed, call_with_retries
from models.specs import IN_PROCESS, ChatSpec, Structure
from models.structured import REFUSAL, OnText, StructuredReply, request, structures_from

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


ChatFactory = Callable[[ChatSpec, float | None], "BaseChatModel"]
"""Makes the chat model of a spec at a temperature."""

KEYS = {
    "openai": "OPENAI_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
NO_KEY = "none"


def make_chat_model(spec: ChatSpec, temperature: float | None) -> BaseChatModel:
    """Make the chat model of ``spec``.

    Raises:
        SetupError: A package or a key is missing; names the extra or the variable.
    """
    # LangChain is slow to import, and the local profile does without.
    from langchain.chat_models import init_chat_model

    make: Callable[..., BaseChatModel] = init_chat_model
    options: dict[str, Any] = {
        "timeout": spec.timeout_s,
        # Retries and deadlines are ours (models.retries), the same for every provider.
        "max_retries": 0,
    }
    if temperature is not None:
        options["temperature"] = temperature
    limit = spec.max_tokens + spec.thinking_tokens
    if spec.base_url is None:
        options |= {"max_tokens": limit, **spec.options}
    else:
        # LangChain would send OpenAI's newer name for the limit, which other servers ignore.
        options |= {"base_url": spec.base_url, "extra_body": {"max_tokens": limit, **spec.options}}
    key = api_key(spec)
    if key is not None:
        options["api_key"] = key
    provider = "openai" if spec.provider == IN_PROCESS else spec.provider
    if provider == "openai":
        # A reply that comes in pieces is counted too, also by servers other than OpenAI's own.
        options["stream_usage"] = True
    try:
        return make(spec.model_name, model_provider=provider, **options)
    except ImportError as error:
        hint = extra_of(spec.provider).hint
        raise SetupError(
            marked(
                f"the language model {spec.model!r} needs a package that is not installed: {hint}"
            )
        ) from error
    except ValueError as error:
        raise SetupError(f"the language model {spec.model!r} cannot be used: {error}") from error


def api_key(spec: ChatSpec) -> str | None:
    """Return the key from the environment or the keyring; a dummy for a server that wants none.

    Servers of this process have a key of their own.

    Raises:
        SetupError: The variable is not set.
    """
    if spec.provider == IN_PROCESS:
        return KEY
    variable = key_variable(spec)
    if variable is None:
        return NO_KEY if spec.base_url is not None else None
    key = read_key(variable)
    if not key:
        raise SetupError(
            f"the language model {spec.model!r} needs a key: "
            f"set the environment variable {variable}, or `keyring set {SERVICE} {variable}`"
        )
    return key


def key_variable(spec: ChatSpec) -> str | None:
    """Return the environment variable with the key; None if the server wants none."""
    if spec.key is not None:
        return spec.key or None
    return None if spec.base_url is not None else KEYS.get(spec.provider)


def redact_key(text: str, spec: ChatSpec) -> str:
    """Replace the key, and secrets of the address, in ``text``."""
    variable = key_variable(spec)
    return redact(text, [read_key(variable) if variable else None, *secrets_of_url(spec.base_url)])


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


CONTEXT_TOKENS = 16_384
CACHE_MB = 1_024
"""Memory for the cache of earlier prompts; llama.cpp would take eight times as much."""
IMAGE_TOKENS = 512
"""Tokens of an image at most: a dozen are to fit into the context beside the page of a clip."""
ALL_LAYERS = 999
MAX_THREADS = 8
ERRORS_ONLY = 1
ANY_PORT = 0
KEY = secrets.token_hex(16)
"""Asked for by the servers of this process, which every page of a browser could reach otherwise."""

_running: list[Any] = []
"""Servers stop when they are garbage-collected, so they are kept until the process ends."""


@cache
def llama_url(model: Path, projector: Path | None = None) -> str:
    """Serve the GGUF file ``model`` on this machine only; return its address.

    There is one server a model and process, started on first use. With a ``projector`` it sees.

    Raises:
        SetupError: the extra is not installed, or the model does not start.
    """
    try:
        import xllamacpp
    except ImportError as error:
        hint = extra_of("llama").hint
        raise SetupError(f"a language model in this process needs a package: {hint}") from error
    try:
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        if projector is not None:
            params.mmproj.path = str(projector)
            params.image_max_tokens = IMAGE_TOKENS
        params.hostnames = ["127.0.0.1"]
        params.port = ANY_PORT
        params.api_keys = [KEY]
        params.n_ctx = CONTEXT_TOKENS
        params.n_parallel = 1
        params.cache_ram_mib = CACHE_MB
        # A reply comes token by token, with every thread waiting for every other many times in
        # each: where something else wants a core, the whole waits. Reading a prompt suffers less.
        params.cpuparams.n_threads = max(1, min(MAX_THREADS, (os.cpu_count() or 1) // 2))
        params.cpuparams_batch.n_threads = max(THREADS, params.cpuparams.n_threads)
        # Waiting threads sleep instead of spinning.
        params.cpuparams.poll = params.cpuparams_batch.poll = 0
        gpus = [one for one in xllamacpp.get_device_info() if "CPU" not in str(one["type"])]
        params.n_gpu_layers = ALL_LAYERS if gpus else 0
        params.verbosity = ERRORS_ONLY
        params.ui = False
        params.warmup = False
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise SetupError(f"{model} does not start as a language model: {error}") from error
    _running.append(server)
    return f"{server.listening_address}/v1"
