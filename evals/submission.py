"""The answers of a run in the form that the leaderboard of its data set reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from domain.errors import InputError
from evals.datasets import source
from evals.export import write
from evals.tables import RunReport


@dataclass(frozen=True)
class Submission:
    """The written answers of an arm, of so many; ``wanted`` by the data set, None: unknown."""

    file: Path
    arm: str
    answers: int
    wanted: int | None


def write_submissions(folder: Path, report: RunReport) -> list[Submission]:
    """Write a file for each arm of a run that chose options.

    Raises:
        InputError: the data set has no leaderboard, nothing was chosen, or nothing can be written.
        NotFound: there is no such data set.
    """
    run, asked = report.run.name, source(report.run.settings.dataset)
    if asked.submission is None:
        raise InputError(f"{asked.title} has no leaderboard that Homer can write for")
    chosen: dict[str, dict[str, str]] = {}
    for row in report.questions:
        if row.option:
            chosen.setdefault(row.arm, {})[row.id] = row.option
    if not chosen:
        raise InputError(f"the run {run} has chosen no option yet")
    _make(folder)
    written = []
    names = _file_names(chosen)
    for arm, letters in chosen.items():
        file = folder / f"{run}-{names[arm]}.json"
        write(file, json.dumps(asked.submission(letters), indent=1) + "\n")
        written.append(Submission(file, arm, len(letters), asked.published.questions))
    return written


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error


def _file_names(arms: Iterable[str]) -> dict[str, str]:
    """Return what the file of each arm is named by; of equal names later ones have a number."""
    names: dict[str, str] = {}
    for arm in arms:
        name = written = re.sub(r"[^a-z0-9.+]+", "-", arm.lower()).strip("-")
        number = 1
        while written in names.values():
            number += 1
            written = f"{name}-{number}"
        names[arm] = written
    return names
