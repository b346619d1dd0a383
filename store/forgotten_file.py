"""The file of ``--keep-undo``: a zip of the rows and images that were forgotten."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from domain.errors import InputError
from domain.settings import DEFAULT_LIMITS, ImportLimits
from store.archive import open_zip, read_lines, read_member, report_damage, too_large
from store.files import atomic_file
from store.queries.backup import OWN_TO_LIBRARY
from store.queries.encoders import LibraryEncoders
from store.queries.forget import Copy
from store.tables.schema import Base

VERSION = 1
_OF_THE_LIBRARY = {
    *("audit", "library", "taken", "skills", "saved_searches", "enforced_rights", "group_members"),
    *OWN_TO_LIBRARY,
}
_TABLES = Base.metadata.tables.keys() - _OF_THE_LIBRARY
BLOBS = "blobs/"
KIND = "file of --keep-undo"


@dataclass(frozen=True)
class ForgottenFile:
    """The rows that were deleted with a person, the time, and the images by SHA-256.

    ``encoders`` made the vectors of the rows.
    """

    video: str
    library: str
    encoders: LibraryEncoders
    at: datetime
    rows: tuple[Copy, ...]
    blobs: Mapping[str, bytes]


def write_forgotten_file(out: Path, forgotten: ForgottenFile) -> None:
    """Write the deleted rows and images to ``out``, atomically.

    Raises:
        InputError: The file exists already, or cannot be written.
    """
    if out.exists():
        raise InputError(f"{out} is there already: name a new file for --keep-undo")
    with atomic_file(out) as temporary, ZipFile(temporary, "w", ZIP_DEFLATED) as archive:
        head: dict[str, object] = {
            "keepsake": VERSION,
            "video": forgotten.video,
            "library": forgotten.library,
            "encoders": forgotten.encoders,
        }
        head["at"] = forgotten.at.isoformat()
        rows = [json.dumps([copy.table, copy.row], ensure_ascii=False) for copy in forgotten.rows]
        archive.writestr("rows.jsonl", "\n".join([json.dumps(head), *rows]))
        for sha, data in sorted(forgotten.blobs.items()):
            archive.writestr(f"blobs/{sha}", data)


def read_forgotten_file(path: Path, limits: ImportLimits = DEFAULT_LIMITS) -> ForgottenFile:
    """Read a file written by ``write_forgotten_file``.

    Raises:
        InputError: The file cannot be read, is of another kind or altered, or exceeds a limit.
    """
    with open_zip(path, KIND, limits) as archive, report_damage(path, KIND):
        names = [name for name in archive.namelist() if name.startswith(BLOBS)]
        blobs = {
            name.removeprefix(BLOBS): read_member(path, archive, name, limits) for name in names
        }
        if any(hashlib.sha256(data).hexdigest() != sha for sha, data in blobs.items()):
            raise ValueError("an image that is not what it was")
        with archive.open("rows.jsonl") as file:
            lines = read_lines(path, file, limits)
            head = json.loads(next(lines, b""))
            if head["keepsake"] != VERSION:
                raise ValueError("of another version")
            rows = tuple(_row(line) for line in islice(lines, limits.rows + 1))
            if len(rows) > limits.rows:
                raise too_large(path, "it has too many rows", "rows", limits.rows)
        at = datetime.fromisoformat(head["at"])
        encoders = LibraryEncoders.parse(head["encoders"])
        return ForgottenFile(head["video"], head["library"], encoders, at, rows, blobs)


def _row(line: bytes) -> Copy:
    """Parse a row; reject tables that forgetting a person never changes."""
    table, text = json.loads(line)
    json.loads(text)  # A row that is no JSON is refused here, not by the database.
    if table not in _TABLES:
        raise ValueError("a table that nothing is forgotten of")
    return Copy(table, text)
