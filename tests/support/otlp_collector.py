"""A collector on this machine that takes OTLP over HTTP and keeps what it is sent."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Seen:
    """A span as it came in; ``parent`` is None at the top."""

    id: bytes
    parent: bytes | None
    trace: bytes
    name: str
    kind: int
    failed: bool
    attributes: dict[str, Any]


class Collector:
    """Serves within a ``with`` block."""

    def __init__(self) -> None:
        self.raw: list[tuple[str, bytes]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def spans(self) -> list[Seen]:
        """Every span, in the order in which they ended."""
        found = []
        for path, body in self.raw:
            if path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                for one in (
                    s for r in request.resource_spans for p in r.scope_spans for s in p.spans
                ):
                    output = {a.key: _value(a.value) for a in one.attributes}
                    ids = (one.span_id, (one.parent_span_id or None), one.trace_id)
                    found.append(Seen(*ids, one.name, one.kind, one.status.code == 2, output))
        return found

    def resources(self) -> list[dict[str, Any]]:
        requests = [
            ExportTraceServiceRequest.FromString(b) for p, b in self.raw if p == "/v1/traces"
        ]
        every = [r.resource for request in requests for r in request.resource_spans]
        return [{a.key: _value(a.value) for a in one.attributes} for one in every]

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """By name, the attributes and the points that came last."""
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for path, body in self.raw:
            if path == "/v1/metrics":
                request = ExportMetricsServiceRequest.FromString(body)
                scopes = [p for r in request.resource_metrics for p in r.scope_metrics]
                for one in (metric for scope in scopes for metric in scope.metrics):
                    points = getattr(one, one.WhichOneof("data")).data_points
                    output = [({a.key: _value(a.value) for a in p.attributes}, p) for p in points]
                    found[one.name] = output
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _value(output: Any) -> Any:
    return getattr(output, output.WhichOneof("value"))


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            collector.raw.append((self.path, gzip.decompress(body) if packed else body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            pass

    return Handler
