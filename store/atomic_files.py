"""Atomic files: written under a temporary name, then moved into place."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from domain.errors import InputError
from store.private_files import create_private


@contextmanager
def atomic_file(out: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``out`` when the block succeeds.

    The file is readable by its owner only, whatever the mode of a file that it replaces. Temporary
    files that killed writers of the same file left are removed.

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file to write")
    # The name is random, so that nobody can put a link in its place beforehand.
    temporary = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        _remove_leftovers(out)
        os.close(create_private(temporary, new=True))
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(out)
    except OSError as exc:
        raise InputError(f"{out} cannot be written: {exc.strerror or exc}") from exc
    finally:
        temporary.unlink(missing_ok=True)


def _remove_leftovers(out: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(out.name)}\.(\d+)(?:-[0-9a-f]+)?\.part")
    for path in out.parent.iterdir():
        match = pattern.fullmatch(path.name)
        if match and not psutil.pid_exists(int(match[1])):
            # In a shared folder it may be another user's.
            with suppress(OSError):
                path.unlink()
