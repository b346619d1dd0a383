"""Jobs of other containers and machines that share the data directory, but no process ids."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.jobs import Job, Jobs
from services.daemon import JobState, write_exit_code
from store.home import Home
from store.postmaster import HostIdentity


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    every = Jobs(Home(tmp_path))
    every.command = (sys.executable, "-c", "import time; time.sleep(60)")
    recording = tmp_path / "film.mp4"
    recording.write_bytes(b"film")
    begun: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def popen(*given: object, **options: object) -> subprocess.Popen[bytes]:
        begun.append(real(*given, **options))  # type: ignore[call-overload]
        return begun[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", popen)
        every.start([recording])
    yield every
    for one in begun:
        one.kill()
        one.wait()


def move(jobs: Jobs, tmp_path: Path, **output: object) -> None:
    """Has the job file say that it was begun elsewhere, and of which process."""
    (path,) = (Home(tmp_path).run).glob("ingest-*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **output}))


def only(jobs: Jobs) -> Job:
    (found,) = jobs.every()
    return found


def container() -> str:
    """Another pid namespace of the same kernel."""
    return str(HostIdentity.here()._replace(machine="other", pids="1"))


def test_one_of_another_container_is_known_by_its_lock(jobs: Jobs, tmp_path: Path) -> None:
    assert only(jobs).here
    pid = only(jobs).pid
    move(jobs, tmp_path, where=container(), pid=2**22 + 1)
    job = only(jobs)
    assert (job.stage, job.here) == (JobState.WATCHING, False)
    jobs.pause(job.id)
    jobs.dismiss(job.id)
    jobs.forget(job.sources[0])
    assert only(jobs).stage is JobState.WATCHING
    subprocess.run(["kill", "-9", str(pid)], check=True)
    end = time.monotonic() + 10
    while only(jobs).running and time.monotonic() < end:
        time.sleep(0.01)
    assert only(jobs).stage is JobState.KILLED


def test_of_one_elsewhere_nothing_is_known_until_it_ends(jobs: Jobs, tmp_path: Path) -> None:
    move(jobs, tmp_path, where="far/other-boot/1", pid=2**22 + 1)
    job = only(jobs)
    assert (job.stage, job.running, job.here) == (JobState.UNKNOWN, True, False)
    assert job.watches(job.sources[0])
    jobs.dismiss(job.id)
    jobs.go_on(job.id)
    assert only(jobs).id == job.id
    write_exit_code(Home(tmp_path).run / f"ingest-{job.id}.end", 0)
    assert only(jobs).stage is JobState.DONE
    jobs.dismiss(job.id)
    assert jobs.every() == []
    assert not list(Home(tmp_path).run.glob("ingest-*"))
