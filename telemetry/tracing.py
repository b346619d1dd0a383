"""Spans of what Homer does: watching clips and their steps, asking, searching, calling a model.

A span that ends is a record of the log, an OpenTelemetry span, and measurements. The last two go
nowhere until ``export_to`` names a tracer and a meter (``telemetry.otel``). Fields are ids, numbers
and words of the code, never content: what was said, asked or answered has no place in them.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, Self, TypeVar

from opentelemetry import metrics, trace

if TYPE_CHECKING:
    from domain.media import Video

# The ids of what is under way, which its spans and log records have.

Value = str | int | float | bool
Fields = Mapping[str, Value]

IDS = ("video", "clip", "trajectory", "flow_run", "round")
"""The fields that everything below a span has too."""

_ANONYMOUS = re.compile(r"[0-9a-f]{16}|x[0-9a-f]{15}|[0-9a-f-]{36}")
_ids: ContextVar[Fields] = ContextVar("ids", default={})  # noqa: B039 - never changed in place


def current_ids() -> Fields:
    return _ids.get()


@contextmanager
def bind_ids(**ids: Value) -> Iterator[None]:
    """Give these ids to all spans and records inside."""
    token = _ids.set({**_ids.get(), **{key: mask_id(value) for key, value in ids.items()}})
    try:
        yield
    finally:
        _ids.reset(token)


def mask_id(value: Value) -> Value:
    """Return an id that says nothing: that of captions is made of their file's name."""
    if not isinstance(value, str) or _ANONYMOUS.fullmatch(value):
        return value
    return f"x{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:15]}"


Content = Callable[[], Mapping[str, str]]

_LOG = logging.getLogger(f"homer.{__name__}")


class Work(StrEnum):
    """What a span is about."""

    FLOW = "flow"
    CLIP = "clip"
    STAGE = "stage"
    QUESTION = "question"
    ROUND = "round"
    SEARCH = "search"
    CALL = "call"


class Metric(StrEnum):
    """What is counted, and what is measured from time to time."""

    CLIPS = "clips"
    FAILURES = "failures"
    LAG_S = "lag"


_LOGGED_AT_INFO = (Work.FLOW, Work.CLIP, Work.QUESTION)
"""Other spans are logged at ``debug``."""
_AS_GEN_AI = {
    "model": "gen_ai.request.model",
    "provider": "gen_ai.provider.name",
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
}
_OPERATIONS = {Work.CALL: "chat", Work.SEARCH: "retrieval", Work.QUESTION: "invoke_agent"}
_METRIC_ATTRIBUTES = (
    *("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.provider.name", "homer.mode"),
)
"""Attributes of a span that its measurements have too: those with few values."""
_TOKENS = (("tokens_in", "input"), ("tokens_out", "output"))


class Instruments:
    """The metrics. None of their attributes is an id, but for the video that lags."""

    def __init__(self, meter: metrics.Meter) -> None:
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

    def measure_span(self, span: Span, error: BaseException | None) -> None:
        """Record how long a span took, and the tokens of a call."""
        if span.work not in self._seconds:
            return
        shared = {k: v for k, v in attributes(span).items() if k in _METRIC_ATTRIBUTES}
        if span.work is Work.STAGE:
            shared["homer.stage"] = span.name
        if error is not None:
            shared["error.type"] = type(error).__name__
        self._seconds[span.work].record(span.seconds, shared)
        for tokens, kind in _TOKENS:
            if span.work is Work.CALL and tokens in span.fields:
                self._tokens.record(int(span.fields[tokens]), {**shared, "gen_ai.token.type": kind})

    def measure(self, metric: Metric, value: float, fields: Fields) -> None:
        """Add to a count, or set a gauge."""
        if metric is Metric.CLIPS:
            self._clips.add(int(value))
        elif metric is Metric.FAILURES:
            self._failures.add(int(value), {"error.type": str(fields.get("error", ""))})
        elif metric is Metric.LAG_S:
            self._lag.set(value, {"homer.video": fields.get("video", "")})


@dataclass(frozen=True)
class Exports:
    """Where spans and measurements go; ``content``: what calls say goes along."""

    tracer: trace.Tracer
    instruments: Instruments
    content: bool


def export_to(
    traces: trace.TracerProvider | None = None,
    meters: metrics.MeterProvider | None = None,
    *,
    content: bool = False,
) -> None:
    """Send spans and measurements to these providers from here on; nowhere where one is None."""
    global _exports
    _exports = _exports_to(traces, meters, content)


def _exports_to(
    traces: trace.TracerProvider | None, meters: metrics.MeterProvider | None, content: bool
) -> Exports:
    tracer = (traces or trace.NoOpTracerProvider()).get_tracer("homer")
    meter = (meters or metrics.NoOpMeterProvider()).get_meter("homer")
    return Exports(tracer, Instruments(meter), content)


_exports = _exports_to(None, None, False)


@dataclass
class Span:
    """Something under way. ``fields`` may grow until it ends.

    ``content`` gives what a call said; it is asked only where the environment wants content sent.
    """

    work: Work
    name: str
    fields: dict[str, Value]
    ids: Fields
    exported: trace.Span
    content: Content | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self.began

    @contextmanager
    def activate(self) -> Iterator[Span]:
        """Make it the parent of the spans begun inside, in whichever thread."""
        exported = trace.use_span(
            self.exported, record_exception=False, set_status_on_exception=False
        )
        with bind_ids(**self.ids), exported:
            yield self

    def end(self, error: BaseException | None = None) -> None:
        prominent = self.work in _LOGGED_AT_INFO
        extra = {"homer": {**self.ids, **self.fields, "ms": round(self.seconds * 1000)}}
        if error is None or isinstance(error, KeyboardInterrupt):
            outcome = "done" if error is None else "stopped"
            level = logging.INFO if prominent else logging.DEBUG
            _LOG.log(level, f"{self.name} {outcome}", extra=extra)
        else:
            level = logging.WARNING if prominent else logging.DEBUG
            _LOG.log(level, f"{self.name} failed", exc_info=error, extra=extra)
        _exports.instruments.measure_span(self, error)
        if self.exported.is_recording():
            self.exported.set_attributes(attributes(self))
            if _exports.content and self.content is not None:
                said = self.content()
                self.exported.set_attributes({f"gen_ai.{k}.messages": v for k, v in said.items()})
            if error is not None:
                self.exported.set_attribute("error.type", type(error).__name__)
                self.exported.set_status(trace.Status(trace.StatusCode.ERROR))
        self.exported.end()


def attributes(span: Span) -> dict[str, Value]:
    """Return a span's ids and fields by their conventional names."""
    found = {f"homer.{key}": value for key, value in span.ids.items()}
    if span.work in _OPERATIONS:
        found["gen_ai.operation.name"] = _OPERATIONS[span.work]
    if span.work is Work.QUESTION:
        found["gen_ai.agent.name"] = "homer"
    for key, value in span.fields.items():
        known = _AS_GEN_AI.get(key) if span.work is Work.CALL else None
        found[known or f"homer.{key}"] = value
    return found


def begin(work: Work, name: str = "", **fields: Value) -> Span:
    """Begin a span that goes on in several pieces (``Span.activate``) until ``Span.end``."""
    own_ids = {key: mask_id(value) for key, value in fields.items() if key in IDS}
    own = {key: value for key, value in fields.items() if key not in IDS}
    is_call = work is Work.CALL
    exported = _exports.tracer.start_span(
        f"chat {own['model']}" if is_call else name or work,  # As the conventions have it.
        kind=trace.SpanKind.CLIENT if is_call else trace.SpanKind.INTERNAL,
    )
    return Span(work, name or work, own, {**current_ids(), **own_ids}, exported)


@contextmanager
def span(work: Work, name: str = "", **fields: Value) -> Iterator[Span]:
    """Surround what happens inside with a span; ``name`` tells several of one kind apart."""
    begun = begin(work, name, **fields)
    try:
        with begun.activate():
            yield begun
    except BaseException as error:
        begun.end(error)
        raise
    begun.end()


def measure(metric: Metric, value: float = 1, **fields: Value) -> None:
    """Add to a count, or set what is measured."""
    _exports.instruments.measure(metric, value, {**current_ids(), **fields})


P = ParamSpec("P")
R = TypeVar("R")


class HasVideo(Protocol):
    """Works on one video."""

    video: Video


W = TypeVar("W", bound=HasVideo)


def traced_step(
    name: str,
) -> Callable[[Callable[Concatenate[W, P], R]], Callable[Concatenate[W, P], R]]:
    """Surround each try of a step with a span."""

    def decorate(step: Callable[Concatenate[W, P], R]) -> Callable[Concatenate[W, P], R]:
        @wraps(step)
        def run(work: W, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with span(Work.STAGE, name, video=work.video.id):
                return step(work, *args, **kwargs)

        return run

    return decorate


class ClipSpans:
    """The spans of a video's clips. They overlap: the next clip is perceived ahead."""

    def __init__(self, video: Video, clip_ms: int) -> None:
        self._video, self._clip_ms = video, clip_ms
        self._open: dict[int, Span] = {}

    def run(self, clip: int, step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if clip not in self._open:
            self._open[clip] = begin(Work.CLIP, clip=clip)
        with self._open[clip].activate():
            return step(*args, **kwargs)

    def end(self, clip: int, error: Exception | None) -> None:
        """End a clip's span: it is in memory, or left for another run with ``error``."""
        begun = self._open.pop(clip, None)
        if begun is not None:
            begun.end(error)
        left_ms = self._video.duration_ms - (clip + 1) * self._clip_ms
        measure(Metric.LAG_S, max(0, left_ms) / 1000)
        if error is None:
            measure(Metric.CLIPS)
        else:
            measure(Metric.FAILURES, error=type(error).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the spans of clips that were broken off."""
        for left in self._open.values():
            left.end(error or InterruptedError())
        self._open.clear()
