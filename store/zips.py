"""Zip files that others made: opened, and whatever is wrong with them told in one line."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from domain.errors import InputError

_BROKEN = (BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, LookupError)
_ODD = (ValueError, TypeError, NotImplementedError, RuntimeError, OverflowError)


@contextmanager
def open_zip(path: Path, what: str) -> Iterator[ZipFile]:
    """A zip to read from; ``what`` it should be, for messages.

    Raises:
        InputError: it cannot be read, or is no zip.
    """
    with damage_told(path, what):
        archive = ZipFile(path)
    with archive:
        yield archive


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
