"""A video in a file that one can keep or hand on: a zip of JSON lines and of the blobs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from store.database import Store
from store.queries.asked import asked_of
from store.queries.dump import canonical
from store.queries.records import Record, records
from store.whole import whole_file

VERSION = 1


def export_video(store: Store, video_id: str, out: Path) -> None:
    """Writes everything about a video to ``out``, which is whole or not there.

    In the zip: ``video.jsonl`` (what was learned, vectors in full), ``asked.jsonl`` (the
    trajectories that looked at it, with questions, events, model calls and their messages), and
    ``blobs/SHA256`` (keyframes and crops).

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
        DatabaseError: a blob is missing or damaged.
    """
    with whole_file(out) as aside, ZipFile(aside, "w") as archive:
        _write(store, video_id, archive)


def _write(store: Store, video_id: str, archive: ZipFile) -> None:
    with store.begin(snapshot=True) as session:
        head: Record = {"row": "export", "version": VERSION, "video": video_id}
        learned = chain([head], records(session, video_id, whole=True))
        shas = _write_lines(archive, "video.jsonl", learned)
        _write_lines(archive, "asked.jsonl", asked_of(session, video_id))
    for sha in shas:
        archive.writestr(_entry(f"blobs/{sha}", ZIP_STORED), store.blobs.get(sha))


def _write_lines(archive: ZipFile, name: str, lines: Iterable[Record]) -> list[str]:
    """Writes records and returns the blobs that they name as the video's."""
    shas = []
    with archive.open(_entry(name, ZIP_DEFLATED), "w", force_zip64=True) as file:
        for record in lines:
            file.write(canonical(record).encode() + b"\n")
            if record["row"] == "blob":
                shas.append(record["sha256"])
    return shas


def _entry(name: str, how: int) -> ZipInfo:
    """An entry without a clock time, so that equal exports are equal bytes."""
    info = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = how
    info.external_attr = 0o644 << 16
    return info
