"""The blob store keeps its promises under any sequence of putting, losing and damaging."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.errors import DatabaseError
from store.blobs import BlobStore
from tests.support.full_suite import examples

_numbers = itertools.count()
DATA = st.sampled_from([b"", b"a", b"bb", b"\x00" * 100, b"same", bytes(range(256))])
FUTURE = 4e9
"""Seconds since 1970, long from now."""


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Blobs(RuleBasedStateMachine):
    """See the module; ``make`` gives an empty place."""

    make: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.url = type(self).make()
        self.store = BlobStore(self.url)
        self.there: dict[str, bytes] = {}
        self.damaged: set[str] = set()

    @rule(data=DATA)
    def put(self, data: bytes) -> None:
        sha = self.store.put(data)
        assert sha == sha_of(data)
        if sha in self.damaged and self.same_size(sha, data):
            return
        self.there[sha] = data
        self.damaged.discard(sha)

    def same_size(self, sha: str, data: bytes) -> bool:
        return len(self.there[sha]) == len(data)

    @rule(data=DATA)
    def delete(self, data: bytes) -> None:
        self.store.delete(sha_of(data))
        self.there.pop(sha_of(data), None)
        self.damaged.discard(sha_of(data))

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def cut_short(self, data: st.DataObject) -> None:
        sha = data.draw(st.sampled_from(sorted(self.there)))
        if len(self.there[sha]) > 1:
            with self.store._fs.open(self.store.path(sha), "wb") as file:
                file.write(self.there[sha][:1])
            self.there[sha] = self.there[sha][:1]
            self.damaged.add(sha)

    @rule(data=DATA)
    def leave_a_part(self, data: bytes) -> None:
        folder = self.store.path(sha_of(data))
        self.store._fs.makedirs(folder.rsplit("/", 1)[0], exist_ok=True)
        with self.store._fs.open(f"{folder}.part-1-2-dead", "wb") as file:
            file.write(data)
        assert self.store.sweep_parts(0) == 0
        assert self.store.sweep_parts(FUTURE) == 1
        assert self.store.sweep_parts(FUTURE) == 0

    @rule()
    def open_again(self) -> None:
        self.store = BlobStore(self.url)

    @invariant()
    def what_was_put_is_there_and_nothing_else(self) -> None:
        assert {sha for sha, _ in self.store.walk()} == set(self.there)
        for data in (b"", b"a", b"same"):
            assert self.store.exists(sha_of(data)) == (sha_of(data) in self.there)

    @invariant()
    def what_comes_back_is_what_was_put_or_an_error(self) -> None:
        for sha, data in self.there.items():
            if sha in self.damaged:
                with pytest.raises(DatabaseError, match="damaged"):
                    self.store.get(sha)
            else:
                assert self.store.get(sha) == data
        with pytest.raises(DatabaseError, match="missing"):
            self.store.get("0" * 64)


class InMemory(Blobs):
    """In fsspec's memory."""

    make = staticmethod(lambda: f"memory://blobs-{next(_numbers)}")


class OnDisk(Blobs):
    """In a folder, which is removed afterwards."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        type(self).make = staticmethod(lambda: str(Path(self._folder.name) / "blobs"))
        super().__init__()

    def teardown(self) -> None:
        self._folder.cleanup()


few = settings(max_examples=examples(6, 15), stateful_step_count=15, deadline=None)
TestInMemory = InMemory.TestCase
TestInMemory.settings = few
TestOnDisk = OnDisk.TestCase
TestOnDisk.settings = few


@pytest.fixture(params=["file", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    urls = {"file": str(tmp_path / "blobs"), "memory": f"memory://{tmp_path.name}"}
    return BlobStore(urls[request.param])


@pytest.mark.parametrize(
    "name", ["", "abc", "../../etc/passwd", "A" * 64, "0" * 63 + "\n", "g" * 64]
)
def test_a_name_that_is_no_digest_never_becomes_a_path(blobs: BlobStore, name: str) -> None:
    for use in (blobs.get, blobs.path, blobs.delete, blobs.exists):
        with pytest.raises(ValueError, match="not a SHA-256"):
            use(name)


def test_many_writers_of_one_blob_leave_one_whole_file(tmp_path: Path) -> None:
    data, shas = os.urandom(200_000), []
    start = threading.Barrier(8)

    def write() -> None:
        start.wait()
        shas.append(BlobStore(str(tmp_path)).put(data))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(shas)) == 1
    assert BlobStore(str(tmp_path)).get(shas[0]) == data
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DatabaseError, match=r"No space left on device.*free some space"):
        BlobStore(str(tmp_path)).put(b"too much")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "b"))
    sha = blobs.put(b"x")
    blobs.delete(sha)
    Path(blobs.path(sha)).parent.rmdir()
    blobs.put(b"x")
    assert blobs.get(sha) == b"x"
