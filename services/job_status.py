"""The end of a job: its process writes down its exit code; one that ended without was killed."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path

END = "HOMER_JOB_END"
"""Names the file into which a job's process writes its exit code."""

ACTING = "HOMER_ACTING"
"""Names the user who started a job, for the audit log; by default the user of the process."""

STOPPED = 130
"""The exit code of a process that was asked to stop."""


class JobState(StrEnum):
    """The state of a job. ``killed``: its process ended without writing down how.

    ``unknown``: it was started on another host, and it is not known whether it still runs.
    """

    WATCHING = "watching"
    DONE = "done"
    PAUSED = "paused"
    FAILED = "failed"
    KILLED = "killed"
    UNKNOWN = "unknown"


def write_exit_code(path: Path, code: int) -> None:
    """Write down the exit code of a job."""
    with suppress(OSError):
        path.write_text(str(code))


def write_stop_request(path: Path) -> None:
    """Write down that a job was asked to stop, unless it has ended already."""
    with suppress(OSError), path.open("x") as file:
        file.write(str(STOPPED))


def state_at_end(path: Path) -> JobState:
    """Return the state of a job whose process is gone."""
    try:
        code = int(path.read_text())
    except (OSError, ValueError):
        return JobState.KILLED
    return {0: JobState.DONE, STOPPED: JobState.PAUSED}.get(code, JobState.FAILED)
