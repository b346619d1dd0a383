"""Cases in worker processes; one that dies or hangs is a finding, and the next one goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

WAIT_S = 60.0
"""Seconds by the clock without a word, for a case that waits for something that never comes."""

BAD = ("crash", "hang", "memory")


@dataclass
class Tally:
    """What became of the cases of a target."""

    target: str
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    slowest: int = 0
    most_mb: int = 0
    largest: int = 0
    findings: list[tuple[int, str]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many there were."""
        return self.outcomes.total()

    def add(self, number: int, result: dict[str, Any]) -> None:
        """One more."""
        outcome = str(result["outcome"])
        self.outcomes[outcome] += 1
        seconds, megabytes = float(result.get("s", 0)), int(result.get("mb", 0))
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, number
        if megabytes > self.most_mb:
            self.most_mb, self.largest = megabytes, number
        if outcome in BAD:
            self.findings.append((number, f"{outcome}: {result['message']}"))
        elif outcome == "refused":
            self.errors[str(result["message"])] += 1


def run(
    target: str,
    seed: int,
    first: int,
    end: int,
    seconds: float | None = None,
    worker: str = "tests.fuzz.worker",
) -> Tally:
    """Reads cases ``first`` to ``end`` of a target, or as many as there is time for."""
    tally, until = Tally(target), time.monotonic() + seconds if seconds else None
    while first < end and (until is None or time.monotonic() < until):
        for number, result in _worked(worker, target, seed, first, end, until):
            tally.add(number, result)
            first = number + 1
    return tally


def _worked(
    worker: str, target: str, seed: int, first: int, end: int, until: float | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The results of one process, until it is through, it dies or time is over."""
    command = [sys.executable, "-m", worker, target, *map(str, (seed, first, end))]
    # FFmpeg tells on stderr what it thinks of each file.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    current = None
    try:
        for line in _lines(process):
            output = json.loads(line)
            if "end" in output:
                current = None
                yield output["end"], output
                if until is not None and time.monotonic() > until:
                    return
            else:
                current = output.get("begin", current)
    finally:
        process.kill()
        code = process.wait()
    if current is not None:
        yield current, _died(code)
    elif code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the worker of {target} ends with {code} before its first case")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Lines of a process, until it ends or says nothing for too long."""
    assert process.stdout is not None
    left = b""
    while select.select([process.stdout], [], [], WAIT_S)[0]:
        block = os.read(process.stdout.fileno(), 1 << 16)
        if not block:
            process.wait(WAIT_S)
            return
        *whole, left = (left + block).split(b"\n")
        yield from whole


def _died(code: int) -> dict[str, Any]:
    """How a worker ended within a case."""
    if code in (-signal.SIGPROF, -signal.SIGKILL):
        return {"outcome": "hang", "message": "beyond its time"}
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return {"outcome": "crash", "message": name}
