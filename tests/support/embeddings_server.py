"""A local server for embeddings that speaks OpenAI's protocol, and counts tokens as one does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.support.local_servers import serving

Reply = Callable[[list[str]], tuple[int, Any]]
"""Returns the status and content for the texts of a request."""

MEANING = {"dog": 0, "Hund": 0, "gate": 1}


def count_tokens(text: str) -> int:
    """Count pieces of words of at most four letters, signs, and a mark at each end."""
    return 2 + len(re.findall(r"\w{1,4}|[^\w\s]", text))


def vectors(texts: list[str]) -> tuple[int, Any]:
    """Reply with vectors of length 2."""
    return _reply(texts, lambda text: np.eye(3)[MEANING.get(text.split()[-1], 2)])


def word_vectors(texts: list[str]) -> tuple[int, Any]:
    """Reply with vectors in which texts are near that share words."""
    return _reply(
        texts, lambda text: sum(map(_of_word, re.findall(r"\w+", text)), np.full(32, 0.1))
    )


@cache
def _of_word(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(word.lower().encode())).normal(size=32)


def _reply(texts: list[str], vector: Callable[[str], NDArray[np.float64]]) -> tuple[int, Any]:
    rows = [np.asarray(2 * vector(text), np.float32) for text in texts]
    data = [
        {"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(rows)
    ]
    tokens = sum(map(count_tokens, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return 200, {"object": "list", "model": "tiny", "data": data, "usage": usage}


@contextmanager
def server(reply: Reply = vectors) -> Iterator[tuple[str, list[list[str]]]]:
    """Serve embeddings; yields the address and the texts of each request."""
    requests: list[list[str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, body["encoding_format"]) == ("/v1/embeddings", "float")
            requests.append(body["input"])
            status, content = reply(body["input"])
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}/v1", requests
