"""Running Postgres as somebody who may: what is tried, in which order, and what is said."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.errors import DatabaseError
from store import postmaster
from store.postmaster import ROOT_RUNNERS, UnprivilegedUser, find_runner

WORKS: set[str] = set()
HANGS: set[str] = set()
ABSENT: set[str] = set()


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    find_runner.cache_clear()
    yield
    find_runner.cache_clear()


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The ways that root tried; those that begin with a name in ``works`` succeed."""
    made: list[tuple[str, ...]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        made.append(tuple(command))
        if command[0] in WORKS:
            return subprocess.CompletedProcess(command, 0)
        if command[0] in HANGS:
            raise subprocess.TimeoutExpired(command, 20)
        if command[0] in ABSENT:
            raise FileNotFoundError(command[0])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    for names in (WORKS, HANGS, ABSENT):
        names.clear()
    return made


def test_an_ordinary_user_runs_it_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert find_runner() == UnprivilegedUser((), 1234)


def test_root_looks_like_nobody_in_a_namespace_if_allowed(tried: list[tuple[str, ...]]) -> None:
    WORKS.update({"unshare", "setpriv"})
    found = find_runner()
    assert (found.prefix[0], found.owner) == ("unshare", 0)
    assert [command[-1] for command in tried] == ["true"]


@pytest.mark.parametrize("bad", [HANGS, ABSENT, set()])
def test_root_becomes_nobody_where_it_is_not(tried: list[tuple[str, ...]], bad: set[str]) -> None:
    WORKS.add("setpriv")
    bad.add("unshare")
    found = find_runner()
    assert (found, found.owner) == (ROOT_RUNNERS[1], postmaster.NOBODY)
    assert [command[0] for command in tried] == ["unshare", "setpriv"]


def test_root_with_neither_way_is_reported_both_ways_out(tried: list[tuple[str, ...]]) -> None:
    with pytest.raises(DatabaseError, match="as an ordinary user, or set HOMER_DATABASE_URL"):
        find_runner()
    assert len(tried) == len(ROOT_RUNNERS)


def test_a_folder_is_given_to_its_owner_with_all_below_it_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    data = tmp_path / "data"
    (data / "base").mkdir(parents=True)
    (data / "base/1").write_text("row")
    (data / "link").symlink_to(outside)
    given: list[tuple[str, int, int, bool]] = []

    def chown(path: Path, user: int, group: int, *, follow_symlinks: bool) -> None:
        given.append((Path(path).name, user, group, follow_symlinks))

    monkeypatch.setattr(os, "chown", chown)
    UnprivilegedUser((), 4321).own(data)
    assert {name for name, *_ in given} == {"data", "base", "1", "link"}
    assert {tuple(rest) for _, *rest in given} == {(4321, -1, False)}
    given.clear()
    UnprivilegedUser((), data.stat().st_uid).own(data)
    assert given == []
