"""A local server that speaks OpenAI's chat protocol, for tests: scripted, and able to misbehave.

    with OpenAIServer([{"city": "Paris"}]) as server:
        ...ask through server.base_url...
        assert server.requests[0]["messages"][-1]["content"] == "..."

A script is a list of answers, given in order, or a function from the request to an answer. An
answer is a value (sent as JSON), a string (sent as it is) or an ``Answer`` for anything else.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import Any, Self

EVERYTHING = frozenset({"json_schema", "tools", "usage", "images", "stream"})
PIECE = 7
"""Characters of a reply that is sent in pieces."""


@dataclass(frozen=True)
class Answer:
    """One answer. ``drip_s`` sends it byte by byte with that pause; ``drop`` hangs up instead.

    Of a reply sent in pieces ``pause_s`` follows each, and it ends after ``pieces`` of them.
    """

    content: Any = ""
    status: int = 200
    delay_s: float = 0.0
    drip_s: float = 0.0
    drop: bool = False
    pause_s: float = 0.0
    pieces: int | None = None
    finish: str = "stop"
    tokens: tuple[int, int] = (100, 20)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else json.dumps(self.content)


Script = Iterable[Any] | Callable[[dict[str, Any]], Any]


class OpenAIServer:
    """Serves the script on a free port. ``requests`` are the bodies received, in order.

    Args:
        script: the answers, or a function that makes them.
        supports: of ``json_schema``, ``tools``, ``images``, ``stream`` those that are not refused
            with 400, and ``usage`` if tokens are counted.
    """

    def __init__(self, script: Script = (), supports: Iterable[str] = EVERYTHING) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.supports = frozenset(supports)
        self._next = script if callable(script) else _in_order(script)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def texts(self) -> list[str]:
        """All text of each request, images left out: what a model would read."""
        return [_text_of(request) for request in self.requests]

    def _answer(self, request: dict[str, Any], headers: dict[str, str]) -> Answer:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            refused = self._refused(request)
            if refused:
                return Answer({"error": {"message": refused, "type": "invalid_request_error"}}, 400)
            made = self._next(request)
        return made if isinstance(made, Answer) else Answer(made)

    def _refused(self, request: dict[str, Any]) -> str | None:
        if "response_format" in request and "json_schema" not in self.supports:
            return "response_format is not supported"
        if "tools" in request and "tools" not in self.supports:
            return "tools are not supported"
        if request.get("stream") and "stream" not in self.supports:
            return "stream is not supported"
        if "image_url" in json.dumps(request) and "images" not in self.supports:
            return "this model cannot look at images"
        return None


def _in_order(script: Iterable[Any]) -> Callable[[dict[str, Any]], Any]:
    answers = iter(script)

    def following(_request: dict[str, Any]) -> Any:
        return next(answers, Answer({"error": {"message": "the script is over"}}, 418))

    return following


def _text_of(request: dict[str, Any]) -> str:
    parts: list[str] = []
    for message in request["messages"]:
        content = message["content"]
        if isinstance(content, str):
            parts.append(content)
        else:
            parts.extend(part["text"] for part in content if part["type"] == "text")
    return "\n".join(parts)


def _completion(answer: Answer, request: dict[str, Any], usage: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if request.get("tools"):
        call = {"name": request["tools"][0]["function"]["name"], "arguments": answer.text}
        message["content"] = None
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
    tokens_in, tokens_out = answer.tokens
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
    }
    if usage:
        body["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
    return body


def _chunks(answer: Answer, request: dict[str, Any], usage: bool) -> Iterator[dict[str, Any]]:
    whole = _completion(answer, request, usage)
    frame = {**whole, "object": "chat.completion.chunk", "usage": None}
    for delta in _deltas(answer.text, whole["choices"][0]["message"]):
        yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish}]}
    if usage and request.get("stream_options", {}).get("include_usage"):
        yield {**frame, "choices": [], "usage": whole["usage"]}


def _deltas(text: str, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    if "tool_calls" not in message:
        yield {"role": "assistant", "content": ""}
        yield from ({"content": piece} for piece in pieces)
        return
    call = message["tool_calls"][0]
    named = {"name": call["function"]["name"], "arguments": ""}
    yield {"role": "assistant", "tool_calls": [{**call, "index": 0, "function": named}]}
    for piece in pieces:
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _events(answer: Answer, request: dict[str, Any], usage: bool) -> Iterator[bytes]:
    for chunk in islice(_chunks(answer, request, usage), answer.pieces):
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    if answer.pieces is None:
        yield b"data: [DONE]\n\n"


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {key.lower(): value for key, value in self.headers.items()}
            answer = server._answer(request, headers)
            time.sleep(answer.delay_s)
            if answer.drop:
                self.close_connection = True
                return
            self._send(answer, request)

        def _send(self, answer: Answer, request: dict[str, Any]) -> None:
            if answer.status == 200 and request.get("stream"):
                self._stream(answer, request)
                return
            body: Any = answer.content
            if answer.status == 200:
                body = _completion(answer, request, "usage" in server.supports)
            data = json.dumps(body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self._write(data, answer.drip_s)

        def _stream(self, answer: Answer, request: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in _events(answer, request, "usage" in server.supports):
                self._write(event, answer.drip_s)
                time.sleep(answer.pause_s)
            self.close_connection = True

        def _write(self, data: bytes, drip_s: float) -> None:
            pieces = [data] if not drip_s else [data[i : i + 1] for i in range(len(data))]
            for piece in pieces:
                try:
                    self.wfile.write(piece)
                    self.wfile.flush()
                except OSError:
                    return
                time.sleep(drip_s)

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

    return Handler
