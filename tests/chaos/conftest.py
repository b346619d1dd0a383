"""The table that ``--full`` prints: what became of each fault at each point."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.scratch import scratch

CASE = re.compile(r"\[(?P<work>[^:]+): (?P<point>[^:]+): (?P<fault>.+) (?P<at>\d)\]$")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.getoption("full"):
        for line in table(terminalreporter):
            terminalreporter.write_line(line)


def table(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """A line for each work and point, a column for each fault."""
    results: dict[tuple[str, str], dict[str, str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in reporter.stats.get(outcome, []):
            if found := CASE.search(report.nodeid):
                cells = results.setdefault((found["work"], found["point"]), {})
                worst = cells.get(found["fault"]) in ("failed", "error")
                cells[found["fault"]] = cells[found["fault"]] if worst else outcome
    faults = sorted({fault for cells in results.values() for fault in cells})
    if faults:
        yield _row("work", "fault point", faults)
    for (work, point), cells in results.items():
        yield _row(work, point, [_WORDS.get(cells.get(fault, ""), "-") for fault in faults])


_WORDS = {"passed": "same", "failed": "FAILED", "error": "FAILED"}


def _row(work: str, point: str, cells: list[str]) -> str:
    return f"{work:<8}  {point:<38}  " + "  ".join(f"{cell:<19}" for cell in cells).rstrip()


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A Postgres that may be killed."""
    with scratch() as folder:
        made = EmbeddedPostgres(Home(folder), fsync=False)
        try:
            made.start()
            yield made
        finally:
            made.stop(fast=False)
