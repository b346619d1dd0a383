"""Asks a batch of questions as ``homer ask --batch`` does, and keeps time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import InputError
from evals.grid import Span
from flows.workspace import Workspace
from graphs.batch import BatchQuestion, BatchResult, answered, run_batch, write_batch
from graphs.runner import Runner

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store

Told = Callable[[BatchResult], None]
"""Is given every answer as it comes."""


@dataclass(frozen=True)
class Batch:
    """The answer line of every question that has one, by id, and how long all took."""

    lines: dict[str | int, dict[str, Any]]
    errors: dict[str | int, str]
    seconds: float


def ask_all(
    desk: Workspace, questions: Sequence[BatchQuestion], out: Path | None, told: Told
) -> Batch:
    """Ask all questions anew; ``out`` is written over with their answer lines.

    A language model in this process answers one question at a time: two would share its time.

    Raises:
        InputError: ``out`` is there and is no file of answers.
        NotFound: a question's video is not in the library.
    """
    workers = 1 if desk.profile.in_process else None
    results = run_batch(desk.store, desk.toolbox, questions, workers=workers, make=_unlearned)
    if out is not None:
        _clear(out)
        results = write_batch(out, results)
    began = time.monotonic()
    lines, errors = _collect(results, told)
    return Batch(lines, errors, time.monotonic() - began)


def _unlearned(store: Store, toolbox: Toolbox) -> Runner:
    """Asks without skills: what was learned from these very questions must not count."""
    ask = toolbox.profile.settings.ask.model_copy(update={"skills": False})
    return Runner(store, toolbox, settings=ask)


def _clear(out: Path) -> None:
    """Make room for answers, over earlier answers only."""
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file for the answers")
    answered(out)
    out.unlink(missing_ok=True)


def _collect(
    results: Iterator[BatchResult], told: Told
) -> tuple[dict[str | int, dict[str, Any]], dict[str | int, str]]:
    lines, errors = {}, {}
    for result in results:
        if result.line is not None:
            lines[result.id] = result.line
        else:
            errors[result.id] = str(result.error)
        told(result)
    return lines, errors


def spans_of(line: dict[str, Any], name: str) -> list[Span]:
    """The ``citations`` or ``retrieved`` spans of an answer line, in its order."""
    return [(one["start_s"], one["end_s"]) for one in line[name]]
