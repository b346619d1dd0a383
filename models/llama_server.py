"""A small language model in this process: llama.cpp's own server behind OpenAI's protocol."""

from __future__ import annotations

import os
import secrets
from functools import cache
from pathlib import Path
from typing import Any

from domain.errors import SetupError
from models.extras import extra_of
from models.onnx import THREADS

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
