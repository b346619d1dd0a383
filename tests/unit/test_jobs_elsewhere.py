"""Jobs of other containers and machines that share the data directory, but no process ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import StateType

from flows import prefect_executor
from flows.jobs import Job, Jobs
from flows.prefect_executor import WHERE, is_dead_run
from services.daemon import JobState, write_exit_code
from store import postmaster
from store.home import Home
from store.postmaster import FIRST_PIDS, HostIdentity


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


# Where a run's process is known to be: on this machine, since this boot, in these processes.


NOW = datetime(2031, 5, 7, tzinfo=UTC)


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that is gone."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def run(pid: int, where: str | None) -> Any:
    labels = {} if where is None else {WHERE: where}
    output = {"infrastructure_pid": f"same-name:{pid}", "start_time": datetime.now(UTC)}
    return SimpleNamespace(labels=labels, state_type=StateType.RUNNING, **output)


def test_a_process_is_only_looked_for_among_those_that_its_id_means(dead: int) -> None:
    here = HostIdentity.here()
    assert is_dead_run(run(dead, str(here)), "homer", NOW)
    assert not is_dead_run(run(os.getpid(), str(here)), "homer", NOW)
    container = here._replace(pids="4026539999")
    for elsewhere in (str(container), str(here._replace(machine="0")), None, "", "a/b"):
        assert not is_dead_run(run(dead, elsewhere), "homer", NOW), elsewhere


def test_what_ran_before_this_boot_is_gone(dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = HostIdentity("a", "boot 2", FIRST_PIDS)
    monkeypatch.setattr(HostIdentity, "here", lambda: now)
    before = now._replace(boot="boot 1")
    assert is_dead_run(run(dead, str(before)), "homer", NOW)
    assert not is_dead_run(run(dead, str(before._replace(machine="b"))), "homer", NOW)
    assert not is_dead_run(run(dead, str(before._replace(pids="4026539999"))), "homer", NOW)


def test_elsewhere_there_is_still_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MACHINE", "BOOT", "PIDS"):
        monkeypatch.setattr(postmaster, name, tmp_path / "none")
    here = HostIdentity.here()
    assert here[1:] == ("", "")
    assert HostIdentity.of(str(here)) == here
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    assert HostIdentity.here() != here


def test_a_run_that_ended_while_it_was_looked_at_stays_as_it_ended() -> None:
    ended = uuid4()
    forced: list[Any] = []
    runs = {one: SimpleNamespace(id=one, state=SimpleNamespace(id=uuid4())) for one in "ab"}
    later = {**runs, "b": SimpleNamespace(id="b", state=SimpleNamespace(id=ended))}
    client: Any = SimpleNamespace(
        read_flow_run=later.__getitem__, set_flow_run_state=lambda run, *_, **__: forced.append(run)
    )
    prefect_executor._mark(client, [*runs.values()])  # type: ignore[list-item]
    assert forced == ["a"]
