"""Files that are whole or not there: written aside, then moved into place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from domain.errors import InputError


@contextmanager
def whole_file(out: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, what is there becomes ``out``.

    Left-overs of killed writers of the same file are removed on the way.

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder: name a file to write")
    aside = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        _sweep(out)
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(out)
    except OSError as exc:
        raise InputError(f"{out} cannot be written: {exc.strerror or exc}") from exc
    finally:
        aside.unlink(missing_ok=True)


def _sweep(out: Path) -> None:
    ours = re.compile(rf"\.{re.escape(out.name)}\.(\d+)\.part")
    for path in out.parent.iterdir():
        found = ours.fullmatch(path.name)
        if found and not psutil.pid_exists(int(found[1])):
            path.unlink(missing_ok=True)
