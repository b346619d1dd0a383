"""The file of an export, read: rows as JSON lines, and images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from domain.errors import InputError
from store.export import ROWS, VERSION
from store.migrations import HEAD
from store.queries.parcel import CHECKPOINT_NAMES, COUNTED, parcel_tables
from store.zips import damage_told, open_zip

WHAT = "export"

Row = dict[str, Any]


@dataclass
class Contents:
    """What a first reading found: numbers by table, and answers with what is theirs alone.

    ``ids``: the numbers of rows. ``looked``, ``questions``, ``said``: by trajectory, the videos it
    looked at, its question, the messages of its calls; those of the video's own calls are None's.
    """

    rows: int = 0
    ids: dict[str, list[int]] = field(default_factory=dict)
    looked: dict[str, set[str]] = field(default_factory=dict)
    questions: dict[str, int] = field(default_factory=dict)
    said: dict[str | None, set[str]] = field(default_factory=dict)
    has_checkpoints: bool = False

    def add(self, table: str, row: Row) -> None:
        """Takes note of a row."""
        self.rows += 1
        self.has_checkpoints |= table in CHECKPOINT_NAMES
        if table in COUNTED:
            self.ids.setdefault(table, []).append(int(row["id"]))
        if table == "trajectories":
            self.questions[row["id"]] = row["question_id"]
        if table == "trajectory_videos":
            self.looked.setdefault(row["trajectory_id"], set()).add(row["video_id"])
        if table == "model_calls":
            self.said.setdefault(row["trajectory_id"], set()).update(row["messages"])


class Parcel:
    """The file of an export. Its words are not trusted."""

    def __init__(self, path: Path, archive: ZipFile) -> None:
        self.path, self._zip = path, archive
        self.video = self._read_head()

    def contents(self) -> Contents:
        """Reads the file to its end.

        Raises:
            InputError: it is torn or altered.
        """
        known, found = {*parcel_tables(), *CHECKPOINT_NAMES}, Contents()
        with damage_told(self.path, WHAT):
            if self._zip.testzip() is not None:
                raise ValueError("a checksum is not as it was")
        for table, row in self.rows():
            if table not in known:
                raise InputError(f"{self.path} was altered: there is no table {table!r}")
            with damage_told(self.path, WHAT):
                found.add(table, row)
        return found

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Tables and rows, in the order to add them."""
        with damage_told(self.path, WHAT), self._zip.open(ROWS) as file:
            file.readline()
            for line in file:
                table, row = json.loads(line)
                yield str(table), dict(row)

    def blobs(self) -> Iterator[bytes]:
        """The images, one at a time."""
        for name in self._zip.namelist():
            if name.startswith("blobs/"):
                with damage_told(self.path, WHAT):
                    data = self._zip.read(name)
                yield data

    def _read_head(self) -> str:
        with self._zip.open(ROWS) as file:
            head = json.loads(file.readline(10_000))
        version, revision = head["export"], str(head["revision"])
        if version > VERSION or revision > HEAD:
            raise InputError(f"{self.path} was made by a newer Homer: install that one")
        return str(head["video"])


@contextmanager
def open_parcel(path: Path) -> Iterator[Parcel]:
    """The file of an export.

    Raises:
        InputError: it cannot be read, is none, or is a newer Homer's.
    """
    with open_zip(path, WHAT) as archive:
        with damage_told(path, WHAT):
            parcel = Parcel(path, archive)
        yield parcel
