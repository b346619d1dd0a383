"""Files that are whole or not there: written aside, then moved into place."""

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
def whole_file(out: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, what is there becomes ``out``.

    Only its owner can read it, whatever the mode of a file that it takes the place of.

    Left-overs of killed writers of the same file are removed on the way.

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file to write")
    # Nobody can know the name before it is there, and put a link in its place.
    aside = out.with_name(f".{out.name}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        _sweep(out)
        os.close(create_private(aside, new=True))
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(out)
    except OSError as exc:
        raise InputError(f"{out} cannot be written: {exc.strerror or exc}") from exc
    finally:
        aside.unlink(missing_ok=True)


def _sweep(out: Path) -> None:
    ours = re.compile(rf"\.{re.escape(out.name)}\.(\d+)(?:-[0-9a-f]+)?\.part")
    for path in out.parent.iterdir():
        found = ours.fullmatch(path.name)
        if found and not psutil.pid_exists(int(found[1])):
            # In a folder that many write to it may be another user's.
            with suppress(OSError):
                path.unlink()
