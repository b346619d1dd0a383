"""How a job's process ended: it writes its exit code down; one that is gone without was killed."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path

END = "HOMER_JOB_END"
"""Names the file into which a job's process writes its exit code."""

ACTING = "HOMER_ACTING"
"""Names who had a job begun, for the audit log; else it is the user of the process."""

STOPPED = 130
"""The exit code of whoever was asked to stop."""


class JobState(StrEnum):
    """How far a job is. ``killed``: its process is gone and did not say how it ended.

    ``unknown``: it was begun elsewhere, and nothing here tells whether it still runs.
    """

    WATCHING = "watching"
    DONE = "done"
    PAUSED = "paused"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"


def tell_end(path: Path, code: int) -> None:
    """Writes down how a job ended."""
    with suppress(OSError):
        path.write_text(str(code))


def tell_asked(path: Path) -> None:
    """Writes down that a job was asked to stop, unless it has told already how it ended."""
    with suppress(OSError), path.open("x") as file:
        file.write(str(STOPPED))


def stage_at_end(path: Path) -> JobState:
    """How a job ended whose process is gone."""
    try:
        code = int(path.read_text())
    except (OSError, ValueError):
        return JobState.KILLED
    return {0: JobState.DONE, STOPPED: JobState.PAUSED}.get(code, JobState.FAILED)
