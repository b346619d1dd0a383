"""Watching that goes on beside whoever began it: a process of its own, found again by a file.

``HOMER_HOME/run/ingest-ID.json`` says what is watched by which process, and where that runs; its
words are in the log. How it ended it says itself (``services.job_status``): one that says nothing
and is gone was killed. Containers share the data directory but no process ids: of one in another
container the lock tells that it holds as long as it lives, of one on another machine nothing does.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from domain.audit import acting
from domain.errors import InputError
from domain.texts import storable
from flows.retry import Retry
from perception.source import find_media
from services.daemon import Running, alive, log_file
from services.job_status import ACTING, END, JobState, stage_at_end, tell_asked
from store.home import Home
from store.host_identity import HostIdentity

PREFIX = "ingest-"
TAIL = 8_000


@dataclass(frozen=True)
class Job:
    """A process that watches ``sources``, and the last that it said; ``arguments`` begin it.

    ``here``: its id means something where we are, so that it can be asked to stop.
    """

    id: str
    pid: int
    began: float
    sources: tuple[str, ...]
    arguments: tuple[str, ...]
    stage: JobState
    said: tuple[str, ...]
    here: bool = True

    @property
    def running(self) -> bool:
        """Whether it watches at this moment, as far as is known."""
        return self.stage in (JobState.WATCHING, JobState.UNKNOWN)

    @property
    def unfinished(self) -> bool:
        """Whether it ended before its work was done, so that it can be gone on with."""
        return self.stage in (JobState.PAUSED, JobState.KILLED)

    @property
    def errors(self) -> tuple[str, ...]:
        """What it complained of; that it was asked to stop is no complaint."""
        told = (line for line in self.said if line.startswith("homer:"))
        every = (line.removeprefix("homer:").strip() for line in told)
        return tuple(line for line in every if not line.startswith("stopped"))

    def watches(self, path: str | None) -> bool:
        """Whether a file is among what it watches."""
        own = Path(path) if path else None
        return own is not None and any(own.is_relative_to(source) for source in self.sources)


def new_id() -> str:
    """An id that no job has."""
    return secrets.token_hex(4)


class Jobs:
    """The watching processes of a data directory."""

    command: Sequence[str] = (sys.executable, "-m", "cli")

    def __init__(self, home: Home) -> None:
        self._home = home

    def start(
        self,
        sources: Sequence[Path],
        profile: str | None = None,
        *,
        again: bool = False,
        direct: bool = False,
        job: str | None = None,
    ) -> str:
        """Watch files and folders in a process of its own; returns the job's id.

        Args:
            sources: files and folders.
            profile: the models; None is the configured one.
            again: try clips too that failed for good.
            direct: without Prefect's server.
            job: a ``new_id``, where it is to be known before anything runs.

        Raises:
            InputError: one is not there, or there is no video or audio in them.
        """
        files = [str(source.expanduser().absolute()) for source in sources]
        if not find_media(map(Path, files)):
            raise InputError("there is no video or audio file in there")
        options = [*(("--profile", profile) if profile else ()), *(("--again",) if again else ())]
        options += ["--direct"] if direct else []
        return self._launch(["ingest", *options, "--", *files], files, job)

    def retry(self, wanted: Retry, *, direct: bool = False) -> str:
        """Try clips again in a process of its own; returns the job's id."""
        options = [f"--clip={index}" for index in wanted.indices]
        options += ["--direct"] if direct else []
        return self._launch(["retry", *options, "--", wanted.video.id], [str(wanted.path)])

    def go_on(self, job: str) -> None:
        """Begin a job anew that has ended, which goes on where it was."""
        found = self._find(job)
        if found is not None and not found.running:
            self._launch(found.arguments, found.sources)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One at a time looks what runs, and begins more."""
        with (self._home.make().run / "jobs.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def every(self) -> list[Job]:
        """All jobs that are not dismissed, the latest first."""
        found = [self._read(path) for path in self._home.run.glob(f"{PREFIX}*.json")]
        return sorted((one for one in found if one), key=lambda one: one.began, reverse=True)

    def unclaimed(self, sources: Iterable[str]) -> list[str]:
        """Those of these files that no job watches, or can go on to watch."""
        claims = [one for one in self.every() if one.running or one.unfinished]
        return [path for path in sources if not any(one.watches(path) for one in claims)]

    def pause(self, job: str) -> None:
        """Ask a job that runs to stop: nothing is lost, and it can be gone on with."""
        found = self._find(job)
        if found is not None and found.running and found.here:
            tell_asked(self._end(job))
            with suppress(ProcessLookupError):
                os.kill(found.pid, _stop())

    def dismiss(self, job: str) -> None:
        """Forget a job that has ended."""
        found = self._find(job)
        if found is not None and not found.running:
            for path in (self._file(job), self._log(job), self._end(job), self._held(job)):
                path.unlink(missing_ok=True)

    def forget(self, path: str) -> None:
        """Forget jobs that watched a file and have ended; of others that did, what they said."""
        for one in self.every():
            if one.watches(path) and not one.running:
                if one.sources == (path,) or not one.unfinished:
                    self.dismiss(one.id)
                else:
                    self._log(one.id).write_text("")
                self._log(one.id).with_suffix(".old").unlink(missing_ok=True)

    def _find(self, job: str) -> Job | None:
        return next((one for one in self.every() if one.id == job), None)

    def _launch(
        self, arguments: Sequence[str], sources: Sequence[str], job: str | None = None
    ) -> str:
        """Begins a job, in whose place those go that had the same to watch and have ended."""
        before = [one.id for one in self.every() if one.sources == tuple(sources)]
        job = job or new_id()
        self._home.make()
        told = {"HOMER_HOME": str(self._home.root), END: str(self._end(job))}
        told |= {ACTING: storable(who)} if (who := acting.get()) else {}
        with log_file(self._log(job)) as log, self._held(job).open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **told},
                cwd=self._home.root,
                start_new_session=True,
                pass_fds=[held.fileno()],
            )
        running = Running(process.pid, psutil.Process(process.pid).create_time(), 0)
        row = {**asdict(running), "sources": [*sources], "arguments": [*arguments]}
        row["where"] = str(HostIdentity.here())
        self._file(job).write_text(json.dumps(row))
        for one in before:
            self.dismiss(one)
        return job

    def _read(self, path: Path) -> Job | None:
        job = path.stem.removeprefix(PREFIX)
        try:
            told = json.loads(path.read_text())
            running = Running(int(told["pid"]), float(told["began"]), 0)
            sources, arguments = (tuple(map(str, told[of])) for of in ("sources", "arguments"))
            there = HostIdentity.of(str(told.get("where")))
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        here = there in (None, HostIdentity.here())
        # Looked at first: a process that ends in between has then said how.
        lives = alive(running) if here or there is None else self._lives(job, there)
        stage = self._stage(job, lives)
        said = tuple(_tail(self._log(job)))
        return Job(job, running.pid, running.began, sources, arguments, stage, said, here)

    def _lives(self, job: str, there: HostIdentity) -> bool | None:
        """Whether a job lives that was begun elsewhere; None where nothing tells."""
        here = HostIdentity.here()
        if there.ended_before(here):
            return False
        if not here.boot or there.boot != here.boot:
            return None
        with suppress(FileNotFoundError), self._held(job).open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False
        return None

    def _stage(self, job: str, lives: bool | None) -> JobState:
        if lives:
            return JobState.WATCHING
        end = stage_at_end(self._end(job))
        return JobState.UNKNOWN if lives is None and end is JobState.KILLED else end

    def _held(self, job: str) -> Path:
        return self._home.run / f"{PREFIX}{job}.lock"

    def _file(self, job: str) -> Path:
        return self._home.run / f"{PREFIX}{job}.json"

    def _end(self, job: str) -> Path:
        return self._home.run / f"{PREFIX}{job}.end"

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
