"""Help comes at once: nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    *("alembic", "av", "cv2", "faster_whisper", "insightface", "langchain_core", "langgraph"),
    *("llama_index", "numpy", "onnxruntime", "prefect", "psycopg", "rapidocr", "rich.progress"),
    *("scipy", "sqlalchemy", "streamlit"),
]

PROBE = """
import sys
from cli.main import app
sys.argv = ["homer", *{arguments!r}]
try:
    app()
except SystemExit as end:
    code = end.code
loaded = [name for name in {heavy!r} if name in sys.modules]
print("LOADED", code, *loaded)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["ask", "--help"], ["ingest", "--help"], ["models", "--help"], []]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    probe = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "LOADED"
    assert last[2:] == []
