"""Watching that goes on beside whoever began it: a process of its own, found again by a file.

``HOMER_HOME/run/ingest-ID.json`` says what is watched by which process; its words are in the log.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from domain.errors import InputError
from flows.daemon import Running, alive, log_file
from perception.source import find_media
from store.home import Home

PREFIX = "ingest-"
TAIL = 8_000


@dataclass(frozen=True)
class Job:
    """A process that watches ``sources``, and the last that it said."""

    id: str
    pid: int
    began: float
    sources: tuple[str, ...]
    running: bool
    said: tuple[str, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """What it complained of."""
        told = (line for line in self.said if line.startswith("homer:"))
        return tuple(line.removeprefix("homer:").strip() for line in told)

    def watches(self, path: str | None) -> bool:
        """Whether a file is among what it watches."""
        own = Path(path) if path else None
        return own is not None and any(own.is_relative_to(source) for source in self.sources)


class Jobs:
    """The watching processes of a data directory."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def start(
        self,
        sources: Sequence[Path],
        profile: str | None = None,
        *,
        again: bool = False,
        direct: bool = False,
    ) -> str:
        """Watch files and folders in a process of its own; returns the job's id.

        Args:
            sources: files and folders.
            profile: the models; None is the configured one.
            again: try clips too that failed for good.
            direct: without Prefect's server.

        Raises:
            InputError: one is not there, or there is no video or audio in them.
        """
        files = [source.expanduser().absolute() for source in sources]
        if not find_media(files):
            raise InputError("there is no video or audio file in there")
        options = [*(("--profile", profile) if profile else ()), *(("--again",) if again else ())]
        options += ["--direct"] if direct else []
        command = [sys.executable, "-m", "cli", "ingest", *options, "--", *map(str, files)]
        return self._launch(command, files)

    def every(self) -> list[Job]:
        """All jobs that are not dismissed, the latest first."""
        found = [self._read(path) for path in self._home.run.glob(f"{PREFIX}*.json")]
        return sorted((one for one in found if one), key=lambda one: one.began, reverse=True)

    def pause(self, job: str) -> None:
        """Ask a job that runs to stop: nothing is lost, and it can be gone on with."""
        found = next((one for one in self.every() if one.id == job), None)
        if found is not None and found.running:
            with suppress(ProcessLookupError):
                os.kill(found.pid, _stop())

    def dismiss(self, job: str) -> None:
        """Forget a job that has ended."""
        if any(one.id == job and not one.running for one in self.every()):
            self._file(job).unlink(missing_ok=True)
            self._log(job).unlink(missing_ok=True)

    def _launch(self, command: Sequence[str], files: Sequence[Path]) -> str:
        job = secrets.token_hex(4)
        self._home.make()
        with log_file(self._log(job)) as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "HOMER_HOME": str(self._home.root)},
                cwd=self._home.root,
                start_new_session=True,
            )
        began = psutil.Process(process.pid).create_time()
        told = {**asdict(Running(process.pid, began, 0)), "sources": [str(one) for one in files]}
        self._file(job).write_text(json.dumps(told))
        return job

    def _read(self, path: Path) -> Job | None:
        job = path.stem.removeprefix(PREFIX)
        try:
            told = json.loads(path.read_text())
            running = Running(int(told["pid"]), float(told["began"]), 0)
            sources = tuple(str(one) for one in told["sources"])
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        said = tuple(_tail(self._log(job)))
        return Job(job, running.pid, running.began, sources, alive(running), said)

    def _file(self, job: str) -> Path:
        return self._home.run / f"{PREFIX}{job}.json"

    def _log(self, job: str) -> Path:
        return self._home.logs / f"{PREFIX}{job}.log"


def _stop() -> signal.Signals:
    """Ctrl-C, except where whoever starts jobs hears none, for then they do not either."""
    deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return signal.SIGTERM if deaf else signal.SIGINT


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
