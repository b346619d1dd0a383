"""Exports: one video in a zip of rows as JSON lines and of its blobs."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from store.atomic_files import atomic_file
from store.database import Store
from store.migrations import HEAD
from store.queries.export import rows_of_video

VERSION = 2
ROWS = "rows.jsonl"


def export_video(store: Store, video_id: str, out: Path) -> None:
    """Write everything about a video to ``out``, atomically.

    In the zip: ``rows.jsonl`` (a head, then one ``[table, row]`` a line: what was learned, vectors
    in full, and the trajectories over the video with questions, events, checkpoints, model calls
    and their messages), and ``blobs/SHA256`` (keyframes and crops).

    Raises:
        InputError: ``out`` is a folder, or cannot be written.
        DatabaseError: A blob is missing or damaged.
    """
    with atomic_file(out) as temporary, ZipFile(temporary, "w") as archive:
        _write(store, video_id, archive)


def _write(store: Store, video_id: str, archive: ZipFile) -> None:
    head = {"export": VERSION, "video": video_id, "revision": HEAD}
    shas = []
    with (
        store.begin(snapshot=True) as session,
        archive.open(_entry(ROWS, ZIP_DEFLATED), "w", force_zip64=True) as file,
    ):
        file.write(json.dumps(head).encode())
        for table, row in rows_of_video(session, video_id):
            file.write(f"\n[{json.dumps(table)}, {row}]".encode())
            if table == "blobs":
                shas.append(json.loads(row)["sha256"])
    for sha in shas:
        archive.writestr(_entry(f"blobs/{sha}", ZIP_STORED), store.blobs.get(sha))


def _entry(name: str, compression: int) -> ZipInfo:
    """Return a zip entry without a time stamp, so that equal exports are equal bytes."""
    info = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = compression
    info.external_attr = 0o644 << 16
    return info
