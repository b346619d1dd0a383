"""Models leave the cores to others while their threads wait."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

USED = "import numpy as n; from models.silero import *; SileroActivity().spans(n.zeros(16000, 'f'))"


@pytest.mark.parametrize(("given", "spins"), [({}, "0'"), ({"OMP_WAIT_POLICY": "active"}, "3000")])
def test_threads_that_wait_for_each_other_sleep_unless_told_otherwise(
    given: dict[str, str], spins: str
) -> None:
    """OpenMP tells itself what it goes by; it reads that once, when it is loaded."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OMP_")}
    told = subprocess.run(
        [sys.executable, "-c", USED],
        env=clean | {"OMP_DISPLAY_ENV": "verbose"} | given,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{spins}" in told.stderr
