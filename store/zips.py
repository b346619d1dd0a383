"""Untrusted zip files: limits on their size, and damage reported in one line."""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from domain.errors import InputError
from domain.limits import DEFAULT_LIMITS, GB, MB, ImportLimits

ANY_RATIO_BELOW = 64 * MB
"""Bytes up to which any compression ratio is accepted."""

_BROKEN = (BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, LookupError)
_UNEXPECTED = (ValueError, TypeError, NotImplementedError, RuntimeError, OverflowError)


@contextmanager
def open_zip(path: Path, what: str, limits: ImportLimits = DEFAULT_LIMITS) -> Iterator[ZipFile]:
    """Open a zip for reading; ``what`` it should be is for messages.

    Raises:
        InputError: It cannot be read, is not a zip, or unpacks to more than ``limits`` allow.
    """
    with report_damage(path, what):
        archive = ZipFile(path)
    with archive:
        with report_damage(path, what):
            _check_sizes(path, archive, limits)
        yield archive


def _check_sizes(path: Path, archive: ZipFile, limits: ImportLimits) -> None:
    """Reject what would unpack to too much; ``zipfile`` reads no more than the declared sizes."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two members of one name")
    # With other methods zipfile unpacks a whole block of input at once, whatever its size.
    if any(member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for member in members):
        raise ValueError("a method of compression that Homer does not use")
    total = sum(member.file_size for member in members)
    if total > limits.total_gb * GB:
        raise too_large(path, f"it unpacks to {total / GB:.0f} GB", "total_gb", limits.total_gb)
    # Compared to the file itself too: members may overlap or declare a false size.
    sizes = [(member.file_size, member.compress_size) for member in members]
    for unpacked, packed in (*sizes, (total, path.stat().st_size)):
        if unpacked > max(ANY_RATIO_BELOW, limits.ratio * packed):
            problem = f"{packed / MB:.1f} MB of it unpack to {unpacked / MB:.0f} MB"
            raise too_large(path, problem, "ratio", limits.ratio)


def too_large(path: Path, what: str, setting: str, limit: int) -> InputError:
    """Return the error for a file that exceeds one of the limits on imports."""
    return InputError(
        f"{path} is refused: {what}, and the limit imports.{setting} is {limit} "
        "(raise it in homer.toml if you trust the file)"
    )


def read_lines(path: Path, file: IO[bytes], limits: ImportLimits) -> Iterator[bytes]:
    """Yield the lines of a member, one at a time, without line ends.

    Raises:
        InputError: One is longer than ``limits`` allow.
    """
    limit = limits.line_mb * MB
    with io.BufferedReader(cast(io.RawIOBase, file), MB) as reader:
        while line := reader.readline(limit + 1):
            if len(line) > limit:
                raise line_too_long(path, limits)
            yield line.removesuffix(b"\n")


def line_too_long(path: Path, limits: ImportLimits) -> InputError:
    """Return the error for a line that is too long."""
    return too_large(path, "a line is too long, in MB", "line_mb", limits.line_mb)


def read_member(path: Path, archive: ZipFile, name: str, limits: ImportLimits) -> bytes:
    """Read a member that is an image.

    Raises:
        InputError: It is larger than ``limits`` allow.
    """
    info = archive.getinfo(name)
    if info.file_size > limits.blob_mb * MB:
        problem = f"an image has {info.file_size / MB:.0f} MB"
        raise too_large(path, problem, "blob_mb", limits.blob_mb)
    return archive.read(info)


@contextmanager
def report_damage(path: Path, what: str) -> Iterator[None]:
    """Report errors of reading as damage of the file.

    Raises:
        InputError: There was one.
    """
    try:
        yield
    except (*_BROKEN, *_UNEXPECTED) as exc:
        raise InputError(f"{path} is no {what} of Homer's, or is torn or altered") from exc
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}") from exc
