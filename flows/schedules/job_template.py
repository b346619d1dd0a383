"""The job template of Homer's process work pools: a run can set only its flow's parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("process_job.json")


def process_job_template() -> dict[str, Any]:
    """Read the base job template: no command, environment or folder comes from a run.

    It has no ``env``, since Prefect would merge the variables of a run into it.
    """
    template: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return template
