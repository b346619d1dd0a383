"""What a command started stops when nobody needs it, and when its directory is deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from domain.errors import SetupError
from store import postmaster
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.postmaster import IdleClock, UsageLock, idle_limit_s

PATIENCE_S = 30.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A data directory whose servers stop after three idle seconds."""
    monkeypatch.setenv("HOMER_IDLE_MINUTES", "0.05")
    monkeypatch.delenv("HOMER_DATABASE_URL", raising=False)
    home = Home(tmp_path / "home")
    yield home
    EmbeddedPostgres(home).stop(fast=False)


def within(true: Callable[[], bool]) -> bool:
    return postmaster.wait_until(true, PATIENCE_S)


def server_of(home: Home) -> psutil.Process:
    found = postmaster.running_server(home.postgres)
    assert found is not None
    return psutil.Process(found.pid)


def is_over(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_database_that_nobody_uses_stops_and_the_next_command_starts_it(place: Home) -> None:
    open_store(place).close()
    server = server_of(place)
    assert within(lambda: is_over(server))
    with open_store(place) as store, store.begin():
        assert server_of(place).pid != server.pid


def test_a_database_that_somebody_uses_stays(place: Home) -> None:
    with open_store(place) as store:
        server = server_of(place)
        time.sleep(8)
        assert not is_over(server)
        with store.begin():
            pass
    assert within(lambda: is_over(server))


def test_one_whose_directory_is_gone_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_IDLE_MINUTES", "15")
    monkeypatch.delenv("HOMER_DATABASE_URL", raising=False)
    home = Home(tmp_path / "gone")
    open_store(home).close()
    server = server_of(home)
    shutil.rmtree(home.root)
    assert within(lambda: is_over(server))


def test_a_server_process_stops_when_idle_or_its_directory_is_gone(tmp_path: Path) -> None:
    """As Prefect's server, the app and the worker of schedules do."""
    script = (
        "import signal, sys, time\n"
        "from pathlib import Path\n"
        "from services.daemon import stop_when_unused\n"
        "from store.home import Home\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "stop_when_unused(Home(Path(sys.argv[1])), float(sys.argv[2]) or None)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    kept, gone = Home(tmp_path / "kept").make(), Home(tmp_path / "gone").make()
    begun = [
        subprocess.Popen([sys.executable, "-c", script, str(home.root), idle], stdout=-1, text=True)
        for home, idle in ((kept, "3"), (gone, "0"))
    ]
    for process in begun:
        assert (process.stdout and process.stdout.readline()) == "up\n"
    shutil.rmtree(gone.root)
    assert [process.wait(PATIENCE_S) for process in begun] == [7, 7]


def test_a_killed_process_uses_nothing_any_more(place: Home) -> None:
    clock = IdleClock(place.make())
    script = (
        "import sys, time; from pathlib import Path; from store.home import Home\n"
        "from store.postmaster import UsageLock\n"
        "hold = UsageLock(Home(Path(sys.argv[1]))); print('held', flush=True); time.sleep(60)"
    )
    user = subprocess.Popen([sys.executable, "-c", script, str(place.root)], stdout=-1, text=True)
    assert (user.stdout and user.stdout.readline()) == "held\n"
    with clock.unused() as free:
        assert not free
    assert clock.idle_s() < 1
    user.kill()
    user.wait()
    with clock.unused() as free:
        assert free


def test_idleness_counts_from_the_last_use(place: Home) -> None:
    clock = IdleClock(place.make())
    with UsageLock(place):
        long_ago = time.time() - 1000
        os.utime(place.run / postmaster.IN_USE, (long_ago, long_ago))
        assert clock.idle_s() < 1
    assert clock.idle_s() < 1
    clock._last_busy = long_ago
    os.utime(place.run / postmaster.IN_USE, (long_ago, long_ago))
    assert 990 < clock.idle_s() < 1100
    with clock.unused() as free, IdleClock(place).unused() as other:
        # Two servers that stop at a time do not take each other for somebody who uses them.
        assert free
        assert not other
    clock.touch()
    assert clock.idle_s() < 1


def test_how_long_is_a_setting(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    place.make()
    monkeypatch.delenv("HOMER_IDLE_MINUTES")
    assert idle_limit_s(place) == 15 * 60
    place.config.write_text("[services]\nidle_minutes = 2\n")
    assert idle_limit_s(place) == 120
    monkeypatch.setenv("HOMER_IDLE_MINUTES", "0")
    assert idle_limit_s(place) is None
    for wrong in ("soon", "-1", "nan", "inf"):
        monkeypatch.setenv("HOMER_IDLE_MINUTES", wrong)
        with pytest.raises(SetupError, match="number of minutes"):
            idle_limit_s(place)
