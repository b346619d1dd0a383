"""A command imports what it works with and nothing else, so that it is there at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = [
    *("alembic", "av", "cv2", "fastapi", "faster_whisper", "insightface", "langchain_core"),
    *("langgraph", "llama_index", "numpy", "onnxruntime", "prefect", "psycopg", "pydantic"),
    *("rapidocr", "rich", "scipy", "sqlalchemy", "streamlit"),
    "cli.serve",
]
"""Heavy packages, and modules of commands that are not run here."""

TYPER = {"pydantic"}
"""What reading the arguments of a command takes."""

STORED = {"numpy", "psycopg", "pydantic", "sqlalchemy"}
"""What reading the database takes."""

HELP: list[list[str]] = [
    [],
    ["--help"],
    ["ask", "--help"],
    ["ingest", "--help"],
    ["eval", "run", "--help"],
]
READING = [["videos"], ["show", "talk"], ["check", "talk"], ["dump", "talk"], ["trajectory"]]

PROBE = """
import contextlib, io, json, sys
from cli.main import app
for line in json.loads(sys.argv[1]):
    sys.argv = ["homer", *line]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            app()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, [name for name in {packages!r} if name in sys.modules]]))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, set[str]]]:
    """Exit code and packages after each command, one after the other in one process.

    No server answers at the database's address, so a command has imported all and done nothing.
    """
    home = tmp_path_factory.mktemp("home")
    nowhere = {"HOMER_HOME": str(home), "HOMER_DATABASE_URL": f"postgresql://nobody@/x?host={home}"}
    lines = json.dumps([*HELP, *READING])
    probe = [sys.executable, "-c", PROBE.format(packages=PACKAGES), lines]
    done = subprocess.run(
        probe,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | nowhere,
        cwd=Path(__file__).parents[2],
    )
    output = [json.loads(line) for line in done.stdout.splitlines()]
    return [(code, set(found)) for code, found in output]


def test_help_imports_nothing_heavy(imported: list[tuple[int, set[str]]]) -> None:
    assert [found for _, found in imported[:2]] == [set(), set()]
    assert all(found <= TYPER for _, found in imported[2 : len(HELP)])


def test_what_only_reads_imports_no_model_or_machine(imported: list[tuple[int, set[str]]]) -> None:
    codes, found = zip(*imported[len(HELP) :], strict=True)
    assert set(codes) == {3}
    assert set.union(*found) == STORED
