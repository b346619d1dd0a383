"""Locks on files: who waits for whom, and what others can see of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store.file_locks import (
    file_lock,
    is_locked,
    lock_file,
    locked_paths,
    try_file_lock,
    try_lock_file,
    unlock_file,
)


def test_one_holder_at_a_time_has_the_lock_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with file_lock(path), try_file_lock(path) as second:
        assert not second
    with try_file_lock(path) as after:
        assert after


def test_a_shared_lock_has_any_number_of_holders_and_no_exclusive_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as one, path.open() as two, path.open() as three:
        lock_file(one, shared=True)
        assert try_lock_file(two, shared=True)
        assert not try_lock_file(three)
        unlock_file(one)
        unlock_file(two)
        assert try_lock_file(three)
        assert not try_lock_file(two, shared=True)


def test_a_child_process_that_inherits_the_file_holds_its_lock_too(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with path.open("w") as file:
        lock_file(file)
        inherited = os.dup(file.fileno())
    with try_file_lock(path) as locked:
        assert not locked
    os.close(inherited)
    with try_file_lock(path) as locked:
        assert locked


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system lists no locks")
def test_others_see_that_a_file_is_locked_without_taking_its_lock(tmp_path: Path) -> None:
    path, free, absent = tmp_path / "a.lock", tmp_path / "b.lock", tmp_path / "c.lock"
    free.touch()
    with file_lock(path):
        assert locked_paths([path, free, absent]) == [path]
    assert not is_locked(path)
