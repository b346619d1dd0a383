"""On what a benchmark ran: without it a number says nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

PACKAGES = ("av", "langgraph", "numpy", "onnxruntime", "pgvector", "psycopg", "sqlalchemy")


def described() -> dict[str, object]:
    """Processor, cores, memory, load at the moment, and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    """Its name, where the system tells."""
    output = Path("/proc/cpuinfo")
    lines = output.read_text().splitlines() if output.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")
