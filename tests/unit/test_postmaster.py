"""What a server's pid file says, and what is left of one that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.postmaster import (
    SOCKET,
    Postmaster,
    clear_stale,
    read_pid_file,
    running_server,
    wait_until,
)
from tests.support.full_suite import examples

DEAD = 2**22 - 7
"""Beyond what a kernel gives unless it is told to."""


def pid_file(data: Path, pid: int | str, *, status: str | None = "ready   ") -> Path:
    """A pid file as Postgres writes it; without a status while it is half written."""
    lines = [pid, data, 1_700_000_000, 5432, "/run/sockets", "", "  5432001  65536"]
    place = data / "postmaster.pid"
    place.write_text(
        "\n".join(map(str, [*lines, *([status] if status is not None else [])])) + "\n"
    )
    return place


def test_it_says_which_process_where_its_sockets_are_and_how_far_it_is(tmp_path: Path) -> None:
    pid_file(tmp_path, 4711)
    assert read_pid_file(tmp_path) == Postmaster(4711, "/run/sockets", "ready")


@pytest.mark.parametrize(
    "text", ["", "\n", "4711", "4711\n/data\n170\n5432\n", "pid\n\n\n\n/run\n"]
)
def test_one_that_is_half_written_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "postmaster.pid").write_text(text)
    assert read_pid_file(tmp_path) is None
    assert running_server(tmp_path) is None


@settings(max_examples=examples(15, 40))
@given(st.binary(max_size=60))
def test_any_bytes_read_safely(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    place = tmp_path_factory.mktemp("data")
    (place / "postmaster.pid").write_bytes(data)
    read_pid_file(place)


@pytest.mark.parametrize("pid", [DEAD, os.getpid(), 1], ids=["gone", "ours", "first"])
def test_a_process_that_is_gone_or_another_program_is_no_server(tmp_path: Path, pid: int) -> None:
    pid_file(tmp_path, pid)
    assert running_server(tmp_path) is None


def test_a_process_that_serves_this_very_folder_is(tmp_path: Path) -> None:
    waits = [sys.executable, "-c", "input('here')", "-D", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(waits, stdin=pipe, stdout=pipe) as server:
        # Until a process has begun, the system does not tell with what.
        assert (server.stdout and server.stdout.read(4)) == b"here"
        pid_file(tmp_path, server.pid)
        found = running_server(tmp_path)
        other = tmp_path / "other"
        other.mkdir()
        pid_file(other, server.pid)
        assert running_server(other) is None
    assert (found and found.pid) == server.pid


def test_one_that_nobody_reaped_is_none(tmp_path: Path) -> None:
    # It is gone, but its parent has not asked for it yet.
    with subprocess.Popen([sys.executable, "-c", "", "-D", str(tmp_path)]) as server:
        pid_file(tmp_path, server.pid)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
        assert running_server(tmp_path) is None


def left_by(data: Path, pid: int | str) -> list[Path]:
    """What a killed server leaves: its pid file and its sockets."""
    sockets = [data / SOCKET, data / f"{SOCKET}.lock"]
    for one in sockets:
        one.write_text("left")
    return [pid_file(data, pid), *sockets]


@pytest.mark.parametrize("pid", [os.getpid(), "half"], ids=["ours", "half"])
def test_what_a_killed_server_left_goes_where_none_sees(tmp_path: Path, pid: int | str) -> None:
    left = left_by(tmp_path, pid)
    clear_stale(tmp_path, tmp_path)
    assert not any(one.exists() for one in left)


def test_a_pid_that_is_gone_is_left_to_postgres(tmp_path: Path) -> None:
    left = left_by(tmp_path, DEAD)
    clear_stale(tmp_path, tmp_path)
    assert all(one.exists() for one in left)


def test_waiting_ends_as_soon_as_it_holds_or_when_the_time_is_over() -> None:
    looks = iter([False, False, True])
    assert wait_until(lambda: next(looks), 10)
    assert not wait_until(lambda: False, 0.01)
    assert wait_until(lambda: True, 0)
