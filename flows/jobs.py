"""Ingestion jobs: processes that outlive the command that started them, each with a file.

``HOMER_HOME/run/ingest-ID.json`` has the process, its host and its sources; its output is in the
log. The process writes down how it ended (``services.daemon``); one that ended without was
killed. Containers share the data directory but no process ids: a job in another container is known
to be alive by the lock that it holds; nothing is known of one on another machine.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from domain.errors import InputError
from domain.media import ClipState, Video
from domain.rights import acting_user
from domain.words import make_storable
from flows.addresses import fetched_files, is_address
from models.keys_and_packages import redacted_url, without_login
from perception.source import find_media, video_id
from services.daemon import (
    ACTING,
    END,
    DaemonProcess,
    JobState,
    is_process_alive,
    log_file,
    state_at_end,
    write_stop_request,
)
from store.database import Store
from store.files import MODULE, file_lock, lock_file, try_lock_file
from store.home import Home
from store.postmaster import HostIdentity
from store.queries.clips import StoredClip, clips_of
from store.queries.videos import find_video

PREFIX = "ingest-"
TAIL = 8_000


@dataclass(frozen=True)
class Job:
    """A process that watches ``sources``, with the end of its log and its command line.

    ``here``: it runs on this host, so that its process id is valid and it can be stopped.
    ``fetched``: files that came of the addresses among its sources.
    """

    id: str
    pid: int
    began: float
    sources: tuple[str, ...]
    arguments: tuple[str, ...]
    stage: JobState
    said: tuple[str, ...]
    here: bool = True
    fetched: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Check whether it runs, as far as is known."""
        return self.stage in (JobState.WATCHING, JobState.UNKNOWN)

    @property
    def unfinished(self) -> bool:
        """Check whether it ended before its work was done, so that it can be resumed."""
        return self.stage in (JobState.PAUSED, JobState.KILLED)

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files and folders that it watches."""
        return (*self.sources, *self.fetched)

    @property
    def names(self) -> tuple[str, ...]:
        """Return what to call its sources: the names of files, and addresses without secrets."""
        return tuple(
            redacted_url(source) if is_address(source) else Path(source).name
            for source in self.sources
        )

    @property
    def errors(self) -> tuple[str, ...]:
        """Return its error messages, except that it was stopped."""
        lines = (line for line in self.said if line.startswith("homer:"))
        messages = (line.removeprefix("homer:").strip() for line in lines)
        return tuple(message for message in messages if not message.startswith("stopped"))

    def watches(self, path: str | None) -> bool:
        file = Path(path) if path else None
        return file is not None and any(file.is_relative_to(source) for source in self.files)


def new_id() -> str:
    return secrets.token_hex(4)


class Jobs:
    """The ingestion jobs of a data directory."""

    command: Sequence[str] = (*MODULE, "cli")

    def __init__(self, home: Home) -> None:
        self.home = home

    def start(
        self,
        sources: Sequence[Path],
        profile: str | None = None,
        *,
        again: bool = False,
        direct: bool = False,
        job: str | None = None,
        urls: Sequence[str] = (),
        public_only: bool = False,
    ) -> str:
        """Watch files and folders in a new process; return the job's id.

        Args:
            sources: files and folders.
            profile: the models; None is the configured one.
            again: also retry clips that failed for good.
            direct: without Prefect's server.
            job: a ``new_id``, if the caller has to know it in advance.
            urls: addresses of videos, which the process fetches first.
            public_only: addresses of private hosts are refused.

        Raises:
            InputError: one does not exist, or there is no video or audio in them; or an address is
                none.
        """
        files = [str(source.expanduser().absolute()) for source in sources]
        if not find_media(map(Path, files)) and not urls:
            raise InputError("there is no video or audio file in there")
        if wrong := [url for url in urls if not is_address(url)]:
            raise InputError(f"{wrong[0]!r} is no http or https address")
        options = [*(("--profile", profile) if profile else ()), *(("--again",) if again else ())]
        options += ["--direct"] if direct else []
        options += ["--public-only"] if public_only else []
        # Everybody on the machine can see the command line of a process.
        addresses = ["@-"] if urls else []
        return self._launch(["ingest", *options, "--", *addresses, *files], [*urls, *files], job)

    def retry(self, clips: ClipsToRetry, *, direct: bool = False) -> str:
        """Retry clips in a new process; return the job's id."""
        options = [f"--clip={index}" for index in clips.indices]
        options += ["--direct"] if direct else []
        return self._launch(["retry", *options, "--", clips.video.id], [str(clips.path)])

    def go_on(self, job: str) -> None:
        ended = self._find(job)
        if ended is not None and not ended.running:
            self._launch(ended.arguments, ended.sources)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock under which one process at a time inspects and starts jobs."""
        with file_lock(self.home.make().run / "jobs.lock"):
            yield

    def every(self) -> list[Job]:
        """Return all jobs that are not dismissed, the latest first."""
        jobs = [self._read(path) for path in self.home.run.glob(f"{PREFIX}*.json")]
        return sorted((job for job in jobs if job), key=lambda job: job.began, reverse=True)

    def unclaimed_sources(self, sources: Iterable[str]) -> list[str]:
        """Return the sources that no running or unfinished job watches."""
        jobs = [job for job in self.every() if job.running or job.unfinished]
        return [path for path in sources if not any(job.watches(path) for job in jobs)]

    def pause(self, job: str) -> None:
        """Ask a running job to stop; it can be resumed without loss."""
        entry = self._find(job)
        if entry is not None and entry.running and entry.here:
            write_stop_request(self._path(job, "end"))
            with suppress(ProcessLookupError):
                # A process that ignores SIGINT has children that do so, too.
                ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
                os.kill(entry.pid, signal.SIGTERM if ignored else signal.SIGINT)

    def dismiss(self, job: str) -> None:
        """Delete the files of a job that has ended."""
        ended = self._find(job)
        if ended is not None and not ended.running:
            for ending in ("json", "log", "end", "lock"):
                self._path(job, ending).unlink(missing_ok=True)

    def forget(self, path: str) -> None:
        """Dismiss ended jobs of a file; clear the logs of ended jobs that watched others too."""
        for job in self.every():
            if job.watches(path) and not job.running:
                if job.sources == (path,) or not job.unfinished:
                    self.dismiss(job.id)
                else:
                    self._path(job.id, "log").write_text("")
                self._path(job.id, "log").with_suffix(".old").unlink(missing_ok=True)

    def _find(self, job: str) -> Job | None:
        return next((known for known in self.every() if known.id == job), None)

    def _launch(
        self, arguments: Sequence[str], sources: Sequence[str], job: str | None = None
    ) -> str:
        """Start a job, and dismiss ended jobs that had the same sources.

        Addresses among the sources come to the process by standard input. Its file has them without
        name and password: a job that goes on fetches without them what is not fetched yet.
        """
        addresses = "\n".join(filter(is_address, sources))
        sources = [without_login(one) if is_address(one) else one for one in sources]
        earlier = [known.id for known in self.every() if known.sources == tuple(sources)]
        job = job or new_id()
        self.home.make()
        env = {"HOMER_HOME": str(self.home.root), END: str(self._path(job, "end"))}
        env |= {ACTING: make_storable(who)} if (who := acting_user.get()) else {}
        with log_file(self._path(job, "log")) as log, self._path(job, "lock").open("w") as lock:
            lock_file(lock)
            process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **env},
                cwd="/",
                start_new_session=True,
                pass_fds=[lock.fileno()],
            )
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError), process.stdin:  # It may have ended already.
            process.stdin.write(addresses.encode())
        running = DaemonProcess(process.pid, psutil.Process(process.pid).create_time(), 0)
        row = {**asdict(running), "sources": [*sources], "arguments": [*arguments]}
        row["where"] = str(HostIdentity.here())
        self._path(job, "json").write_text(json.dumps(row))
        for ended in earlier:
            self.dismiss(ended)
        return job

    def _read(self, path: Path) -> Job | None:
        job = path.stem.removeprefix(PREFIX)
        try:
            row = json.loads(path.read_text())
            running = DaemonProcess(int(row["pid"]), float(row["began"]), 0)
            sources, arguments = (tuple(map(str, row[of])) for of in ("sources", "arguments"))
            host = HostIdentity.of(str(row["where"]))
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        if host is None:
            return None
        is_here = host == HostIdentity.here()
        # Checked before the stage: a process that ends in between has then written down how.
        is_alive = is_process_alive(running) if is_here else self._is_alive(job, host)
        if is_alive:
            stage = JobState.WATCHING
        else:
            end = state_at_end(self._path(job, "end"))
            stage = JobState.UNKNOWN if is_alive is None and end is JobState.KILLED else end
        lines, log = tuple[str, ...](), self._path(job, "log")
        with suppress(OSError), log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace")
            lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        fetched = tuple(
            str(file)
            for source in filter(is_address, sources)
            for file in fetched_files(self.home, source)
        )
        return Job(
            job, running.pid, running.began, sources, arguments, stage, lines, is_here, fetched
        )

    def _is_alive(self, job: str, host: HostIdentity) -> bool | None:
        """Check whether a job on another host is alive; None where that is not known."""
        here = HostIdentity.here()
        if host.ended_before(here):
            return False
        if not here.boot or host.boot != here.boot:
            return None
        with suppress(FileNotFoundError), self._path(job, "lock").open() as lock:
            return not try_lock_file(lock, shared=True)
        return None

    def _path(self, job: str, ending: str) -> Path:
        """Return a file of a job: what it is (json), how it ended (end), its lock, its log."""
        return (self.home.logs if ending == "log" else self.home.run) / f"{PREFIX}{job}.{ending}"


# Retrying clips that failed: which clips they are, and where the file of their video is.


@dataclass(frozen=True)
class ClipsToRetry:
    """Clips of a video to retry, and its file; no clips if none has failed."""

    video: Video
    path: Path
    clips: tuple[StoredClip, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(clip.index for clip in self.clips)


def clips_to_retry(
    store: Store, name: str, only: Sequence[int] = (), *, compare: bool = True
) -> ClipsToRetry:
    """Return the clips of a video that failed, or that a model failed to write.

    With ``only``, those of them that it names; those that are done are skipped: an interrupted run
    finished them. ``compare``: check that the file is the one that was watched, which reads all.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
        InputError: one of ``only`` has not failed, or the video's file is missing.
    """
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        clips = clips_of(session, video.id)
    if video.path is None:
        raise InputError(
            f"{video.title} has no file here (captions, a stream, or imported): "
            "nothing to watch again"
        )
    path = Path(video.path)
    if not path.is_file():
        raise InputError(
            f"{video.title} is not at {path} any more: put it back there, or run "
            "`homer ingest FILE --again` with where it is now"
        )
    if compare and video_id(path) != video.id:
        raise InputError(f"{path} is another file by now: put the one back that was watched")
    failed = {c.index: c for c in clips if c.state == ClipState.FAILED or c.unwritten}
    chosen = [clip for index, clip in failed.items() if not only or index in only]
    done = {clip.index for clip in clips if chosen and clip.state == ClipState.DONE}
    wrong = [index for index in only if index not in failed and index not in done]
    if wrong:
        failed_list = ", ".join(map(str, failed)) or "none"
        raise InputError(f"clip {wrong[0]} of {video.title} has not failed (failed: {failed_list})")
    return ClipsToRetry(video, path, tuple(chosen))
