"""Setting up what a process reports: its log, and a collector where the environment names one."""

from __future__ import annotations

import os

from store.home import Home
from telemetry.logs import set_up_logging

_COLLECTOR_VARIABLES = (
    *("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    *("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
)


def set_up_telemetry(home: Home, level: str | None = None) -> None:
    """Log what this process does, and send it where the environment names a collector.

    Where a collector is named and the extra ``otel`` is not installed, nothing is sent, which
    ``homer doctor`` says. Without a collector OpenTelemetry's SDK is not even looked for.

    Raises:
        InputError: The environment asks for a log that there is not.
    """
    set_up_logging(home, level)
    if any(os.environ.get(name) for name in _COLLECTOR_VARIABLES):
        from telemetry.otel import installed, start_export, wanted

        if (wanted("TRACES") or wanted("METRICS")) and installed():
            start_export()
