"""A file with what was forgotten, which only the user has: a zip of rows and of images."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from domain.errors import InputError
from store.queries.forget import Copy
from store.schema import Base
from store.whole import whole_file

VERSION = 2
_CHECKPOINTS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
_TABLES = {*Base.metadata.tables, *(f"checkpoints.{name}" for name in _CHECKPOINTS)}


@dataclass(frozen=True)
class Keepsake:
    """What was forgotten of a video, when, and the images by SHA-256."""

    video: str
    library: str
    at: datetime
    rows: tuple[Copy, ...]
    blobs: Mapping[str, bytes]


def write_keepsake(out: Path, kept: Keepsake) -> None:
    """Write a keepsake to ``out``, which is whole or not there.

    Raises:
        InputError: something is there already, or it cannot be written.
    """
    if out.exists():
        raise InputError(f"{out} is there already: name a new file for --keep-undo")
    with whole_file(out) as aside, ZipFile(aside, "w", ZIP_DEFLATED) as archive:
        head: dict[str, object] = {
            "keepsake": VERSION,
            "video": kept.video,
            "library": kept.library,
        }
        head["at"] = kept.at.isoformat()
        archive.writestr("rows.jsonl", "\n".join(_lines(head, kept.rows)))
        for sha, data in sorted(kept.blobs.items()):
            archive.writestr(f"blobs/{sha}", data)


def _lines(head: Mapping[str, object], rows: Iterable[Copy]) -> Iterable[str]:
    yield json.dumps(head)
    for one in rows:
        yield json.dumps([one.table, one.row], ensure_ascii=False)


def read_keepsake(path: Path) -> Keepsake:
    """What `write_keepsake` wrote.

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    try:
        with ZipFile(path) as archive:
            # Not splitlines: a text may hold what other readers take for the end of a line.
            first, *rest = archive.read("rows.jsonl").decode().split("\n")
            head = json.loads(first)
            rows = tuple(Copy(*json.loads(line)) for line in rest)
            names = [name for name in archive.namelist() if name.startswith("blobs/")]
            blobs = {name.removeprefix("blobs/"): archive.read(name) for name in names}
        if head["keepsake"] != VERSION or not {one.table for one in rows} <= _TABLES:
            raise ValueError("of another version")
        at = datetime.fromisoformat(head["at"])
        return Keepsake(head["video"], head["library"], at, rows, blobs)
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    except (BadZipFile, KeyError, ValueError, TypeError) as exc:
        raise InputError(f"{path} is no file of --keep-undo, or is damaged") from exc
