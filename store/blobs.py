"""Files known by the SHA-256 of their content, behind fsspec."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from domain import faults
from domain.errors import BlobGone, DatabaseError
from store.private_files import make_private

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem  # type: ignore[import-untyped]

_TEMPORARY = ".part-"


class BlobStore:
    """Puts bytes and gets them back by their digest. Safe for many writers at once.

    Args:
        url: a folder, or any url that fsspec knows (``memory://x``, ``s3://bucket/x``).
    """

    def __init__(self, url: str) -> None:
        # Most commands open the store and no blob.
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        self._fs: AbstractFileSystem
        self._fs, self._root = url_to_fs(url)

    def make(self) -> None:
        """Makes the folder, which else comes with the first blob."""
        self._make(self._root)

    def put(self, data: bytes) -> str:
        """Stores ``data`` and returns its SHA-256, 64 hex digits. What is there stays.

        A blob is whole or absent: it is written aside, flushed and renamed.

        Raises:
            DatabaseError: it cannot be written, for want of space or rights.
        """
        sha = hashlib.sha256(data).hexdigest()
        try:
            if not self._refresh(sha, len(data)):
                self._write(self.path(sha), data)
        except OSError as exc:
            raise DatabaseError(
                f"a file cannot be stored in {self._root} ({exc.strerror or exc}): "
                "free some space or check the folder's rights"
            ) from exc
        return sha

    def get(self, sha: str) -> bytes:
        """The bytes with this digest.

        Raises:
            BlobGone: they are not there, or are not what they were.
        """
        try:
            data: bytes = self._fs.cat_file(self.path(sha))
        except FileNotFoundError as exc:
            raise BlobGone(f"the stored file {sha} is missing from {self._root}") from exc
        if hashlib.sha256(data).hexdigest() != sha:
            raise BlobGone(f"the stored file {self.path(sha)} is damaged")
        return data

    def path(self, sha: str) -> str:
        """Where the blob lies or would lie.

        Raises:
            ValueError: ``sha`` is not a SHA-256 in lower-case hex.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", sha):
            raise ValueError(f"not a SHA-256: {sha!r}")
        return f"{self._root}/{sha[:2]}/{sha}"

    def exists(self, sha: str) -> bool:
        """Whether the blob is there."""
        return bool(self._fs.exists(self.path(sha)))

    def delete(self, sha: str) -> None:
        """Removes the blob; nothing happens where there is none."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self.path(sha))

    def walk(self) -> Iterator[tuple[str, float]]:
        """Digests with the time each was last put, in seconds since 1970, in no order."""
        for path, info in self._files():
            name = path.rsplit("/", 1)[-1]
            if re.fullmatch(r"[0-9a-f]{64}", name):
                yield name, _seconds(info)

    def sweep_parts(self, before: float) -> int:
        """Removes what killed writers left half written before this time; returns how many."""
        found = [p for p, info in self._files() if _TEMPORARY in p and _seconds(info) < before]
        for path in found:
            with suppress(FileNotFoundError):
                self._fs.rm_file(path)
        return len(found)

    def _files(self) -> list[tuple[str, dict[str, object]]]:
        if not self._fs.exists(self._root):
            return []
        return list(self._fs.find(self._root, detail=True).items())

    def _refresh(self, sha: str, size: int) -> bool:
        """True where the blob is there in full; it then counts as put now."""
        try:
            if self._fs.size(self.path(sha)) != size:
                return False
            with suppress(NotImplementedError):
                self._fs.touch(self.path(sha), truncate=False)
        except FileNotFoundError:
            return False
        return True

    def _write(self, path: str, data: bytes) -> None:
        self._make(path.rsplit("/", 1)[0])
        aside = f"{path}{_TEMPORARY}{os.getpid()}-{threading.get_ident()}-{secrets.token_hex(4)}"
        try:
            self._write_flushed(aside, data)
            self._fs.mv(aside, path)
            faults.fault_point(faults.FaultPoint.BLOB_WRITTEN)
        except BaseException:
            with suppress(OSError):
                self._fs.rm_file(aside)
            raise

    def _write_flushed(self, path: str, data: bytes) -> None:
        """On disk before the row that names it commits, so a power cut loses neither or both."""
        local = self._is_local()
        with self._fs.open(path, "wb") as file:
            if local:
                os.fchmod(file.fileno(), 0o600)
            file.write(data)
            faults.fault_point(faults.FaultPoint.BLOB_WRITING)
            file.flush()
            if local:
                os.fsync(file.fileno())

    def _make(self, folder: str) -> None:
        if self._is_local():
            make_private(Path(folder))
        else:
            self._fs.makedirs(folder, exist_ok=True)

    def _is_local(self) -> bool:
        return "file" in _protocols(self._fs)


def _protocols(fs: AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _seconds(info: dict[str, object]) -> float:
    """When a file was changed; 0 for file systems that do not say."""
    for key in ("mtime", "LastModified", "updated", "created"):
        found = info.get(key)
        if isinstance(found, int | float):
            return float(found)
        if hasattr(found, "timestamp"):
            return float(found.timestamp())
    return 0.0
