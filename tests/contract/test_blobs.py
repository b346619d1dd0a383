"""Every file system behind the blobs keeps the same promises."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from domain.errors import DatabaseError
from store.blobs import BlobStore


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
