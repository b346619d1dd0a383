"""How soon a command is there.

The help is beside an interpreter that does nothing: what is left is ours. To the first round is
timed with the database up and the question's video in memory, beside the import of the packages
that asking cannot do without.
"""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.lines import RUNS, Line, Taken, costs, milliseconds
from store.embedded import EmbeddedPostgres
from store.home import Home

HOMER = [sys.executable, "-m", "cli"]
HELP_MS, FIRST_ROUND_MS = 300.0, 1500.0
LECTURE = "WEBVTT\n\n00:02.000 --> 00:08.000\nThe harbour of Lisbon was rebuilt.\n"
READS = "import numpy, psycopg, pydantic, sqlalchemy, typer"
"""What a command that reads the library cannot do without."""
NEEDED = "import langgraph.graph, langchain_core.messages, sqlalchemy, onnxruntime"


@dataclass(frozen=True)
class Spent:
    """Milliseconds of a process: by the clock, and of processors."""

    clock: float
    cpu: float


def lines() -> Iterator[Line]:
    """Yield the help, and the first round of a question; the ratio is the time over its bar.

    Processor time is reported without a bar: on a busy machine it says more than the clock. It
    includes loading models meanwhile on another processor.
    """
    helped, bare = _in_turn([*HOMER, "--help"], [sys.executable, "-c", ""])
    yield from _lines("homer --help", helped, bare, "python -c ''", HELP_MS)
    for command in ("ask", "search"):
        yield from _processors([command, "--help"], "")
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            yield from _first_round(home)
        finally:
            EmbeddedPostgres(home).stop()


def _lines(
    what: str, ours: Sequence[Spent], reference: Sequence[Spent], against: str, most_ms: float
) -> Iterator[Line]:
    clock, bare = (Taken(tuple(one.clock for one in runs)) for runs in (ours, reference))
    share = clock.median / most_ms
    name = f"{what} (bar {most_ms:.0f} ms)"
    yield Line(name, clock, bare, against, share, 1.0, more=False)
    cpu, bare = (Taken(tuple(one.cpu for one in runs)) for runs in (ours, reference))
    yield costs(f"{what}, processors", cpu, bare, against)


def _processors(
    command: list[str], needed: str, environment: dict[str, str] | None = None
) -> Iterator[Line]:
    """Yield what a command takes of processors: a merge of modules once tripled it unnoticed."""
    runs = [
        (_run([*HOMER, *command], environment), _run([sys.executable, "-c", needed]))
        for _ in range(RUNS)
    ]
    ours, bare = (Taken(tuple(one.cpu for one in side)) for side in zip(*runs, strict=True))
    yield costs(f"homer {' '.join(command)}, processors", ours, bare, f"python -c '{needed}'")


def _in_turn(*commands: list[str]) -> list[list[Spent]]:
    runs = [[_run(one) for one in commands] for _ in range(RUNS)]
    return [list(column) for column in zip(*runs, strict=True)]


def _first_round(home: Home) -> Iterator[Line]:
    environment = os.environ | {"HOMER_HOME": str(home.root), "HOMER_WEIGHTS": str(_weights())}
    captions = home.root / "lecture.vtt"
    captions.write_text(LECTURE)
    _run([*HOMER, "import", "lecture", "--captions", str(captions)], environment)
    for reading in (["videos"], ["people"], ["search", "harbour"]):
        yield from _processors(reading, READS, environment)
    asked = [*HOMER, "ask", "What was rebuilt?", "--video", "lecture"]
    pairs = [
        (_until_round(asked, environment), _run([sys.executable, "-c", NEEDED]))
        for _ in range(RUNS)
    ]
    ours, needed = zip(*pairs, strict=True)
    yield from _lines("homer ask, to the first round", ours, needed, NEEDED, FIRST_ROUND_MS)


def _weights() -> Path:
    return Home.default().weights


def _run(command: list[str], environment: dict[str, str] | None = None) -> Spent:
    before = _of_children()
    clock = milliseconds(
        lambda: subprocess.run(command, check=True, env=environment, capture_output=True)
    )
    return Spent(clock, _of_children() - before)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def _until_round(command: list[str], environment: dict[str, str]) -> Spent:
    """Return what the process has spent when the first line about a round is there.

    Raises:
        RuntimeError: none came.
    """
    shown, terminal = pty.openpty()  # Rounds are shown on a terminal only.
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment | {"TERM": "xterm"}, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    said = b""
    try:
        with suppress(OSError):  # The process ended, and its end of the terminal is closed.
            while output := os.read(shown, 4096):
                said += output
                if b"round 1" in said:
                    clock = (time.perf_counter() - started) * 1000
                    used = psutil.Process(process.pid).cpu_times()
                    return Spent(clock, (used.user + used.system) * 1000)
    finally:
        with suppress(OSError):
            while os.read(shown, 4096):
                pass
        process.wait()
        os.close(shown)
    raise RuntimeError(f"no round was reported: {said.decode(errors='replace')}")
