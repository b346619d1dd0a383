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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

EVERYTHING = frozenset({"json_schema", "tools", "usage", "images"})


@dataclass(frozen=True)
class Answer:
    """One answer. ``drip_s`` sends it byte by byte with that pause; ``drop`` hangs up instead."""

    content: Any = ""
    status: int = 200
    delay_s: float = 0.0
    drip_s: float = 0.0
    drop: bool = False
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
        supports: of ``json_schema``, ``tools``, ``images`` those that are not refused with 400, and
            ``usage`` if tokens are counted.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        name = request["tools"][0]["function"]["name"]
        call = {"name": name, "arguments": answer.text}
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
