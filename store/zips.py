"""Zip files that others made: opened, and whatever is wrong with them told in one line."""

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
from domain.limits import GB, LIMITS, MB, ImportLimits

SMALL = 64 * MB
"""What unpacks to less may be compressed as well as it will."""

_BROKEN = (BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, LookupError)
_ODD = (ValueError, TypeError, NotImplementedError, RuntimeError, OverflowError)


@contextmanager
def open_zip(path: Path, what: str, limits: ImportLimits = LIMITS) -> Iterator[ZipFile]:
    """A zip to read from; ``what`` it should be, for messages.

    Raises:
        InputError: it cannot be read, is no zip, or unpacks to more than ``limits`` allow.
    """
    with damage_told(path, what):
        archive = ZipFile(path)
    with archive:
        with damage_told(path, what):
            _check_sizes(path, archive, limits)
        yield archive


def _check_sizes(path: Path, archive: ZipFile, limits: ImportLimits) -> None:
    """Refuses what would unpack to too much; ``zipfile`` reads no more than the sizes say."""
    members = archive.infolist()
    if len({one.filename for one in members}) < len(members):
        raise ValueError("two members of one name")
    # Of other methods zipfile unpacks a whole block of input at once, however much comes of it.
    if any(one.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for one in members):
        raise ValueError("a method of compression that Homer does not use")
    total = sum(one.file_size for one in members)
    if total > limits.total_gb * GB:
        raise too_large(path, f"it unpacks to {total / GB:.0f} GB", "total_gb", limits.total_gb)
    # Against the file itself too: members may overlap, or claim a size that they do not have.
    sizes = [(one.file_size, one.compress_size) for one in members]
    for unpacked, packed in (*sizes, (total, path.stat().st_size)):
        if unpacked > max(SMALL, limits.ratio * packed):
            told = f"{packed / MB:.1f} MB of it unpack to {unpacked / MB:.0f} MB"
            raise too_large(path, told, "ratio", limits.ratio)


def too_large(path: Path, what: str, setting: str, limit: int) -> InputError:
    """The error for what is beyond one of the limits on imports."""
    return InputError(
        f"{path} is refused: {what}, and the limit imports.{setting} is {limit} "
        "(raise it in homer.toml if you trust the file)"
    )


def read_lines(path: Path, file: IO[bytes], limits: ImportLimits) -> Iterator[bytes]:
    """The lines of a member, one at a time, without their ends.

    Raises:
        InputError: one is longer than ``limits`` allow.
    """
    most = limits.line_mb * MB
    with io.BufferedReader(cast(io.RawIOBase, file), MB) as reader:
        while line := reader.readline(most + 1):
            if len(line) > most:
                raise long_line(path, limits)
            yield line.removesuffix(b"\n")


def long_line(path: Path, limits: ImportLimits) -> InputError:
    """The error for a line that is too long."""
    return too_large(path, "a line is too long, in MB", "line_mb", limits.line_mb)


def read_member(path: Path, archive: ZipFile, name: str, limits: ImportLimits) -> bytes:
    """A member that is an image.

    Raises:
        InputError: it is larger than ``limits`` allow.
    """
    info = archive.getinfo(name)
    if info.file_size > limits.blob_mb * MB:
        told = f"an image has {info.file_size / MB:.0f} MB"
        raise too_large(path, told, "blob_mb", limits.blob_mb)
    return archive.read(info)


@contextmanager
def damage_told(path: Path, what: str) -> Iterator[None]:
    """Tells what goes wrong in reading as damage of the file.

    Raises:
        InputError: it did.
    """
    try:
        yield
    except (*_BROKEN, *_ODD) as exc:
        raise InputError(f"{path} is no {what} of Homer's, or is torn or altered") from exc
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}") from exc
