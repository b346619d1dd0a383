"""Where a run's process is known to be: on this machine, since this boot, in these processes."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import StateType

from services import stale_runs
from services.stale_runs import WHERE, is_dead_run
from store import postmaster
from store.postmaster import FIRST_PIDS, HostIdentity

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


def test_what_ran_before_this_machine_was_begun_anew_is_gone(
    dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = HostIdentity("a", "boot 2", FIRST_PIDS)
    monkeypatch.setattr(HostIdentity, "here", lambda: now)
    before = now._replace(boot="boot 1")
    assert is_dead_run(run(dead, str(before)), "homer", NOW)
    assert not is_dead_run(run(dead, str(before._replace(machine="b"))), "homer", NOW)
    assert not is_dead_run(run(dead, str(before._replace(pids="4026539999"))), "homer", NOW)


def test_where_linux_does_not_tell_there_is_still_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        read_flow_run=later.__getitem__,
        set_flow_run_state=lambda run, *_, **__: forced.append(run),
    )
    stale_runs._mark(client, [*runs.values()])  # type: ignore[list-item]
    assert forced == ["a"]
