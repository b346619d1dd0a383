"""Asks a batch of questions as ``homer batch`` does, and measures the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import InputError
from evals.scores import Span
from flows.workspace import Workspace
from graphs.batch import BatchQuestion, BatchResult, answered_ids, run_batch, write_batch
from graphs.runner import Runner

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store

OnResult = Callable[[BatchResult], None]
"""Receives every answer as it arrives."""


@dataclass(frozen=True)
class Batch:
    """Answer lines and errors by question id, and the time that all took."""

    lines: dict[str | int, dict[str, Any]]
    errors: dict[str | int, str]
    seconds: float

    @property
    def slowest_s(self) -> float:
        """Return the seconds that the slowest answer took; 0 without any."""
        return max((float(line["seconds"]) for line in self.lines.values()), default=0.0)


def ask_all(
    workspace: Workspace,
    questions: Sequence[BatchQuestion],
    out: Path | None,
    on_result: OnResult,
    strategy: str | None = None,
) -> Batch:
    """Ask all questions again; ``out`` is overwritten with their answer lines.

    ``strategy``: another than the settings name.

    A language model in this process answers one question at a time: two would share its time.

    Raises:
        InputError: ``out`` exists and is not a file of answers.
        NotFound: a question's video is not in the library.
    """
    workers = 1 if workspace.profile.in_process else None
    results = run_batch(
        workspace.store,
        workspace.toolbox,
        questions,
        workers=workers,
        make=_unlearned,
        strategy=strategy,
    )
    if out is not None:
        if out.is_dir():
            raise InputError(f"{out} is a folder: name a file for the answers")
        answered_ids(out)
        out.unlink(missing_ok=True)
        results = write_batch(out, results)
    started = time.monotonic()
    lines, errors = _collect(results, on_result)
    return Batch(lines, errors, time.monotonic() - started)


def _unlearned(store: Store, toolbox: Toolbox) -> Runner:
    """Make a runner without skills: what was learned from these questions must not count."""
    ask_settings = toolbox.profile.settings.ask.model_copy(update={"skills": False})
    return Runner(store, toolbox, settings=ask_settings)


def _collect(
    results: Iterator[BatchResult], on_result: OnResult
) -> tuple[dict[str | int, dict[str, Any]], dict[str | int, str]]:
    lines, errors = {}, {}
    for result in results:
        if result.line is not None:
            lines[result.id] = result.line
        else:
            errors[result.id] = str(result.error)
        on_result(result)
    return lines, errors


def spans_of(line: dict[str, Any], name: str) -> list[Span]:
    """Return the ``citations`` or ``retrieved`` spans of an answer line, in its order."""
    return [(span["start_s"], span["end_s"]) for span in line[name]]
