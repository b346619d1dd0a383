"""Loading models reports to nobody and leaves no trace in the user's home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "code",
    [
        "import models.onnx, onnxruntime",
        "import models.whisper, faster_whisper",
        "import models.toolbox, onnxruntime",
    ],
)
def test_onnx_runtime_keeps_to_itself(tmp_path: Path, code: str) -> None:
    outer = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    report = "import os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        env={**outer, "HOME": str(tmp_path), "XDG_CACHE_HOME": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
    assert not (tmp_path / ".cache" / "Microsoft").exists()


@pytest.mark.parametrize("first", ["models.whisper", "evals.training"])
def test_hugging_faces_libraries_report_nothing(tmp_path: Path, first: str) -> None:
    silent = ("HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK")
    outer = {k: v for k, v in os.environ.items() if k not in silent}
    code = f"import {first}\nfrom huggingface_hub import constants as c\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(c.HF_HUB_DISABLE_TELEMETRY)"],
        env={**outer, "HOME": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
