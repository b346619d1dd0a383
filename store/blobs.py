"""Blob storage: files named by the SHA-256 of their content, through fsspec."""

from __future__ import annotations

import hashlib
import io
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
from store.files import make_private

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem  # type: ignore[import-untyped]

_TEMPORARY = ".part-"
"""Part of the names of files that are being written."""


def image_size(data: bytes, formats: tuple[str, ...] | None = None) -> tuple[int, int]:
    """Read an image's width and height from its header, without decoding it.

    Args:
        formats: As Pillow names them; None: all that it reads.

    Raises:
        ValueError: It is no image, or none of these formats.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=formats) as image:
            return image.size
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError("no image that can be read") from error


class BlobStore:
    """Stores bytes by their digest. Safe for many concurrent writers.

    Args:
        url: A folder, or any url that fsspec supports (``memory://x``, ``s3://bucket/x``).
    """

    def __init__(self, url: str) -> None:
        # Most commands open the store and no blob.
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        self._fs: AbstractFileSystem
        self._fs, self._root = url_to_fs(url)

    def make(self) -> None:
        """Create the folder, which otherwise comes with the first blob."""
        self._make(self._root)

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its SHA-256, 64 hex digits; an existing blob is kept.

        Raises:
            DatabaseError: It cannot be written for lack of space or permissions.
        """
        # A blob is complete or absent: it is written to a temporary file, flushed and renamed.
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
        """Return the bytes with this digest.

        Raises:
            BlobGone: They are missing, or do not match the digest.
        """
        try:
            data: bytes = self._fs.cat_file(self.path(sha))
        except FileNotFoundError as exc:
            raise BlobGone(f"the stored file {sha} is missing from {self._root}") from exc
        if hashlib.sha256(data).hexdigest() != sha:
            raise BlobGone(f"the stored file {self.path(sha)} is damaged")
        return data

    def path(self, sha: str) -> str:
        """Return the path of a blob, whether it exists or not.

        Raises:
            ValueError: ``sha`` is not a SHA-256 in lower-case hex.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", sha):
            raise ValueError(f"not a SHA-256: {sha!r}")
        return f"{self._root}/{sha[:2]}/{sha}"

    def exists(self, sha: str) -> bool:
        return bool(self._fs.exists(self.path(sha)))

    def delete(self, sha: str) -> None:
        """Remove the blob; do nothing if it does not exist."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self.path(sha))

    def walk(self) -> Iterator[tuple[str, float]]:
        """Yield digests with the time of their last put, in seconds since 1970, in no order."""
        for path, info in self._files():
            name = path.rsplit("/", 1)[-1]
            if re.fullmatch(r"[0-9a-f]{64}", name):
                yield name, _modified_at(info)

    def sweep_parts(self, before: float) -> int:
        """Remove partial files that killed writers left before this time; return their number."""
        paths = [p for p, info in self._files() if _TEMPORARY in p and _modified_at(info) < before]
        for path in paths:
            with suppress(FileNotFoundError):
                self._fs.rm_file(path)
        return len(paths)

    def _files(self) -> list[tuple[str, dict[str, object]]]:
        if not self._fs.exists(self._root):
            return []
        return list(self._fs.find(self._root, detail=True).items())

    def _refresh(self, sha: str, size: int) -> bool:
        """Touch the blob if it is complete; return False if it is not."""
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
        temporary = (
            f"{path}{_TEMPORARY}{os.getpid()}-{threading.get_ident()}-{secrets.token_hex(4)}"
        )
        try:
            # Write and flush: a blob must survive a power cut once its row is committed.
            local = self._is_local()
            with self._fs.open(temporary, "wb") as file:
                if local:
                    os.fchmod(file.fileno(), 0o600)
                file.write(data)
                faults.fault_point(faults.FaultPoint.BLOB_WRITING)
                file.flush()
                if local:
                    os.fsync(file.fileno())
            self._fs.mv(temporary, path)
            faults.fault_point(faults.FaultPoint.BLOB_WRITTEN)
        except BaseException:
            with suppress(OSError):
                self._fs.rm_file(temporary)
            raise

    def _make(self, folder: str) -> None:
        if self._is_local():
            make_private(Path(folder))
        else:
            self._fs.makedirs(folder, exist_ok=True)

    def _is_local(self) -> bool:
        return "file" in (
            (self._fs.protocol,) if isinstance(self._fs.protocol, str) else tuple(self._fs.protocol)
        )


def _modified_at(info: dict[str, object]) -> float:
    """Return the modification time of a file; 0 for file systems without it."""
    for key in ("mtime", "LastModified", "updated", "created"):
        stamp = info.get(key)
        if isinstance(stamp, int | float):
            return float(stamp)
        if hasattr(stamp, "timestamp"):
            return float(stamp.timestamp())
    return 0.0
