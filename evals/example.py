"""The example run: recorded by Homer's own evaluation, and shown where no run was made yet.

``python -m evals.example NAME`` writes it from a run of the library of ``HOMER_HOME``.
It is data apart from every library: nothing of it is learned from, counted or searched.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

from domain.base import Frozen
from evals.records import run_report, run_rows
from evals.tables import AnsweredQuestion, RunReport
from store.database import Store, open_store
from store.home import Home

FILE = Path(__file__).parent / "sets" / "example_run.json"


class ExampleRun(Frozen):
    """A recorded run: its report and its questions."""

    report: RunReport
    questions: tuple[AnsweredQuestion, ...]


@cache
def example_run() -> ExampleRun:
    """Return the example run."""
    return ExampleRun.model_validate_json(FILE.read_text("utf-8"))


def record_example(store: Store, name: str) -> ExampleRun:
    """Return a run as an example, without links to its trajectories.

    Raises:
        NotFound: there is no such run.
    """
    report = run_report(store, name)
    rows = (row.model_copy(update={"trajectory": ""}) for row in run_rows(store, name))
    return ExampleRun(report=report, questions=tuple(rows))


def main() -> None:
    """Write the example from a run of the library."""
    parser = argparse.ArgumentParser(description="Record a run as the example.")
    parser.add_argument("name", help="of a finished run")
    options = parser.parse_args()
    with open_store(Home.default()) as store:
        example = record_example(store, options.name)
    FILE.write_text(example.model_dump_json(indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
