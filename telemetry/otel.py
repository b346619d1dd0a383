"""Traces and metrics for an OpenTelemetry collector, where the standard variables name one.

Spans and metrics are those of ``telemetry.tracing``; calls to models follow the conventions for
generative AI. What is said in a call goes along only where
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` asks for it.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from telemetry import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NEEDED = "opentelemetry.exporter.otlp.proto.http"
SHUTDOWN_TIMEOUT_S = 3.0
"""How long the end of a process waits for a collector that does not answer."""


def wanted(kind: str) -> bool:
    """Check whether the environment asks for ``TRACES`` or ``METRICS`` to be sent."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = os.environ.get(f"OTEL_{kind}_EXPORTER", "").strip().lower()
    named = os.environ.get(ENDPOINT) or os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT")
    return exporter == "otlp" or (bool(named) and not exporter)


def content_wanted() -> bool:
    """Check whether the environment asks for what calls say to be sent."""
    return os.environ.get(CONTENT, "").strip().lower() in ("true", "span_only")


def installed() -> bool:
    """Check whether the packages of the extra ``otel`` are installed."""
    try:
        return find_spec(NEEDED) is not None
    except ModuleNotFoundError:
        return False


@cache
def start_export() -> None:
    """Send what the environment asks for from here on; once a process."""
    traces = tracer_provider() if wanted("TRACES") else None
    meters = meter_provider() if wanted("METRICS") else None
    tracing.export_to(traces, meters, content=content_wanted())
    # An unreachable collector must not disturb an ingestion.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    atexit.register(shut_down, [one for one in (traces, meters) if one is not None])


# Other libraries' spans are not sent: the providers are Homer's own, and are not made the
# process's.
def tracer_provider() -> TracerProvider:
    """Make a provider that sends spans in batches."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def meter_provider() -> MeterProvider:
    """Make a provider that sends metrics periodically."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource=_resource(), shutdown_on_exit=False)


def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource

    name = os.environ.get("OTEL_SERVICE_NAME") or "homer"
    return Resource.create({"service.name": name, "service.version": version("homer-video")})


def shut_down(providers: list[Any]) -> None:
    """Send what is left, waiting ``SHUTDOWN_TIMEOUT_S`` at most for the collector."""
    threads = [threading.Thread(target=one.shutdown, daemon=True) for one in providers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SHUTDOWN_TIMEOUT_S)
