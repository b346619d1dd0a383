"""Spans and metrics that are exported, kept in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider


class Exported(SpanProcessor):
    """What was exported; ``log`` has each span's ``+name`` and ``-name`` in order."""

    def __init__(self) -> None:
        self._ended: list[ReadableSpan] = []
        self._reader = InMemoryMetricReader()
        self.log: list[str] = []
        self.traces = TracerProvider(shutdown_on_exit=False)
        self.traces.add_span_processor(self)
        self.metrics = MeterProvider([self._reader], shutdown_on_exit=False)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        del parent_context
        self.log.append(f"+{span.name}")

    def on_end(self, span: ReadableSpan) -> None:
        error = (span.attributes or {}).get("error.type")
        self.log.append(f"-{span.name} {error}" if error else f"-{span.name}")
        self._ended.append(span)

    def spans(self) -> dict[str, ReadableSpan]:
        return {one.name: one for one in self._ended}

    def points(self) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
        """By instrument: each value (of a histogram how many) with its attributes."""
        found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
        data: Any = self._reader.get_metrics_data()
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
            for point in metric.data.data_points:
                value = getattr(point, "value", None)
                output = (point.count if value is None else value, dict(point.attributes))
                found.setdefault(metric.name, []).append(output)
        return found
