"""How soon a command is there.

The help is beside an interpreter that does nothing: what is left is ours. To the first round is
timed with the database up and the question's video in memory, beside the import of the packages
that asking cannot do without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lines import Line, Taken, in_turn
from store.embedded import EmbeddedPostgres
from store.home import Home

HOMER = [sys.executable, "-m", "cli"]
HELP_MS, FIRST_ROUND_MS = 300.0, 1500.0
LECTURE = "WEBVTT\n\n00:02.000 --> 00:08.000\nThe harbour of Lisbon was rebuilt.\n"
NEEDED = "import langgraph.graph, langchain_core.messages, sqlalchemy, onnxruntime"


def lines() -> Iterator[Line]:
    """The help, and the first round of a question; the ratio is the time over its bar."""
    helped, bare = in_turn(
        lambda: _run([*HOMER, "--help"]), lambda: _run([sys.executable, "-c", ""])
    )
    yield _line("homer --help", helped, bare, "python -c ''", HELP_MS)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            yield _first_round(home)
        finally:
            EmbeddedPostgres(home).stop()


def _line(what: str, ours: Taken, reference: Taken, against: str, most_ms: float) -> Line:
    share = ours.median / most_ms
    return Line(f"{what} (bar {most_ms:.0f} ms)", ours, reference, against, share, 1.0, more=False)


def _first_round(home: Home) -> Line:
    environment = os.environ | {"HOMER_HOME": str(home.root), "HOMER_WEIGHTS": str(_weights())}
    captions = home.root / "lecture.vtt"
    captions.write_text(LECTURE)
    _run([*HOMER, "import", "lecture", "--captions", str(captions)], environment)
    asked = [*HOMER, "ask", "What was rebuilt?", "--video", "lecture"]
    ours = Taken(tuple(_until_round(asked, environment) for _ in range(5)))
    (needed,) = in_turn(lambda: _run([sys.executable, "-c", NEEDED]))
    return _line("homer ask, to the first round", ours, needed, NEEDED, FIRST_ROUND_MS)


def _weights() -> Path:
    return Home.default().weights


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env=environment, capture_output=True)


def _until_round(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds until the first line about a round is there.

    Raises:
        RuntimeError: none came.
    """
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = []
        for told in process.stdout:
            if told.strip().startswith("round 1"):
                taken = (time.perf_counter() - started) * 1000
                process.stdout.read()
                return taken
            said.append(told)
    raise RuntimeError(f"no round was told of: {''.join(said)}")
