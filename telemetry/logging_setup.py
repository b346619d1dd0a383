"""Who is told what a process does: its log, and a collector where the environment names one."""

from __future__ import annotations

import os

from store.home import Home
from telemetry.logs import set_up

_NAMING = (
    *("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    *("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
)


def begin_to_tell(home: Home, level: str | None = None) -> None:
    """From here on this process tells what it does.

    Where a collector is named and the extra ``otel`` is not there, nothing is sent, which ``homer
    doctor`` tells. Without a collector nothing of OpenTelemetry is even looked for.

    Raises:
        InputError: the environment asks for a log that there is not.
    """
    set_up(home, level)
    if any(os.environ.get(name) for name in _NAMING):
        from telemetry.otel import begin_to_send, installed, wanted

        if (wanted("TRACES") or wanted("METRICS")) and installed():
            begin_to_send()
