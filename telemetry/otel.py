"""Traces and metrics for an OpenTelemetry collector, where the standard variables name one.

Spans and numbers are those of ``telemetry.tracing``; calls to models follow the conventions for
generative AI. What is said in a call goes along only where
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` asks for it. Other libraries' spans are not
sent: the providers are Homer's own, and are not made the process's.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from telemetry import tracing
from telemetry.tracing import Fields, Number, Span, Value, Work

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NEEDED = "opentelemetry.exporter.otlp.proto.http"
LAST_WAIT_S = 3.0
"""How long the end of a process waits for a collector that does not answer."""

_AS_GEN_AI = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
}
_OPERATIONS = {Work.CALL: "chat", Work.SEARCH: "retrieval", Work.QUESTION: "invoke_agent"}
_FEW = ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.provider.name", "homer.mode")
"""Attributes of numbers: those that have few values."""
_TOKENS = (("tokens_in", "input"), ("tokens_out", "output"))


def wanted(kind: str) -> bool:
    """Whether the environment asks for ``TRACES`` or ``METRICS`` to be sent."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = os.environ.get(f"OTEL_{kind}_EXPORTER", "").strip().lower()
    named = os.environ.get(ENDPOINT) or os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT")
    return exporter == "otlp" or (bool(named) and not exporter)


def installed() -> bool:
    """Whether the extra ``otel`` is there."""
    try:
        return find_spec(NEEDED) is not None
    except ModuleNotFoundError:
        return False


@cache
def begin_to_send() -> None:
    """From here on, what the environment asks for is sent; once a process."""
    traces = _traces() if wanted("TRACES") else None
    metrics = _metrics() if wanted("METRICS") else None
    tracing.observers.append(Telemetry(traces, metrics))
    # A collector that is away is no matter for whoever watches a video.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    atexit.register(_end, [one for one in (traces, metrics) if one is not None])


def _traces() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _metrics() -> MeterProvider:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource=_resource(), shutdown_on_exit=False)


def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource

    name = os.environ.get("OTEL_SERVICE_NAME") or "homer"
    return Resource.create({"service.name": name, "service.version": version("homer-video")})


def _end(providers: list[Any]) -> None:
    """Sends what is left, but waits only so long for a collector that does not answer."""
    threads = [threading.Thread(target=one.shutdown, daemon=True) for one in providers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LAST_WAIT_S)


class Telemetry:
    """Tells a tracer and a meter what happens.

    Args:
        traces: None: no spans are sent.
        metrics: None: no numbers are.
    """

    def __init__(self, traces: TracerProvider | None, metrics: MeterProvider | None) -> None:
        self._tracer = traces.get_tracer("homer") if traces else None
        self._numbers = Numbers(metrics) if metrics else None
        self._content = os.environ.get(CONTENT, "").strip().lower() in ("true", "span_only")

    def began(self, span: Span) -> None:
        """A span within the one that is under way here."""
        if self._tracer is not None:
            from opentelemetry.trace import SpanKind

            kind = SpanKind.CLIENT if span.work is Work.CALL else SpanKind.INTERNAL
            span.kept["otel"] = self._tracer.start_span(_name_of(span), kind=kind)

    @contextmanager
    def inside(self, span: Span) -> Iterator[None]:
        """What happens inside is its child."""
        found = span.kept.get("otel")
        if found is None:
            yield
            return
        from opentelemetry.trace import use_span

        with use_span(found, record_exception=False, set_status_on_exception=False):
            yield

    def ended(self, span: Span, error: BaseException | None) -> None:
        """It is over; an error is told by its class."""
        if self._numbers is not None:
            self._numbers.ended(span, error)
        found = span.kept.pop("otel", None)
        if found is None:
            return
        from opentelemetry.trace import Status, StatusCode

        found.set_attributes(attributes(span))
        if self._content and span.words is not None:
            said = span.words()
            found.set_attributes({f"gen_ai.{k}.messages": v for k, v in said.items()})
        if error is not None:
            found.set_attribute("error.type", type(error).__name__)
            found.set_status(Status(StatusCode.ERROR))
        found.end()

    def number(self, number: Number, value: float, fields: Fields) -> None:
        """Counted, or measured."""
        if self._numbers is not None:
            self._numbers.told(number, value, fields)


def attributes(span: Span) -> dict[str, Value]:
    """A span's fields by their conventional names."""
    told = {f"homer.{key}": value for key, value in span.about.items()}
    if span.work in _OPERATIONS:
        told["gen_ai.operation.name"] = _OPERATIONS[span.work]
    if span.work is Work.QUESTION:
        told["gen_ai.agent.name"] = "homer"
    for key, value in span.fields.items():
        known = _AS_GEN_AI.get(key) if span.work is Work.CALL else None
        told[known or f"homer.{key}"] = value
    return told


def _name_of(span: Span) -> str:
    """``chat MODEL`` for a call, as the conventions have it."""
    return f"chat {span.fields['model']}" if span.work is Work.CALL else span.name


class Numbers:
    """The instruments. None of their attributes is an id, but for the video that lags."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter("homer")
        self._clips = meter.create_counter("homer.clips", "{clip}", "clips that are in memory")
        self._failures = meter.create_counter(
            "homer.failures", "{clip}", "clips that are left for another run"
        )
        self._lag = meter.create_gauge("homer.lag", "s", "video that is not in memory yet")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "by call")
        self._seconds = {
            Work.CALL: meter.create_histogram("gen_ai.client.operation.duration", "s", "a call"),
            Work.SEARCH: meter.create_histogram("homer.search.duration", "s", "a search"),
            Work.STAGE: meter.create_histogram("homer.stage.duration", "s", "a step of a clip"),
            Work.QUESTION: meter.create_histogram("homer.question.duration", "s", "a question"),
        }

    def ended(self, span: Span, error: BaseException | None) -> None:
        """How long it took, and what a call used."""
        if span.work not in self._seconds:
            return
        about = {key: value for key, value in attributes(span).items() if key in _FEW}
        if span.work is Work.STAGE:
            about["homer.stage"] = span.name
        if error is not None:
            about["error.type"] = type(error).__name__
        self._seconds[span.work].record(span.seconds, about)
        for field, kind in _TOKENS:
            if span.work is Work.CALL and field in span.fields:
                self._tokens.record(int(span.fields[field]), {**about, "gen_ai.token.type": kind})

    def told(self, number: Number, value: float, fields: Fields) -> None:
        """What is counted, and what is measured."""
        if number is Number.CLIPS:
            self._clips.add(int(value))
        elif number is Number.FAILURES:
            self._failures.add(int(value), {"error.type": str(fields.get("error", ""))})
        elif number is Number.LAG_S:
            self._lag.set(value, {"homer.video": fields.get("video", "")})
