"""The job of Homer's process work pools: what a run may vary is its flow's parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("process_job.json")


def process_job() -> dict[str, Any]:
    """Read the base job template: no command, environment or folder comes from a run.

    It has no ``env``: Prefect merges what a run asks for into one that is there.
    """
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found
