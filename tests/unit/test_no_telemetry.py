"""Loading models reports to nobody and leaves no trace in the user's home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


ORT = "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
HUB = "from huggingface_hub import constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"
SILENT = {
    *("DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "ORT_DISABLE_TELEMETRY"),
    "DO_NOT_TRACK",
}


@pytest.mark.parametrize(
    ("first", "report", "expected"),
    [
        ("models.onnx, onnxruntime", ORT, "1"),
        ("models.whisper, faster_whisper", ORT, "1"),
        ("models.toolbox, onnxruntime", ORT, "1"),
        ("models.whisper", HUB, "True"),
        ("evals.training", HUB, "True"),
    ],
)
def test_libraries_report_nothing(tmp_path: Path, first: str, report: str, expected: str) -> None:
    outer = {k: v for k, v in os.environ.items() if k not in SILENT}
    done = subprocess.run(
        [sys.executable, "-c", f"import {first}\n{report}"],
        env={**outer, "HOME": str(tmp_path), "XDG_CACHE_HOME": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr
    assert not (tmp_path / ".cache" / "Microsoft").exists()
