"""Back-ups: the whole library in one file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.errors import DatabaseError
from store.archive import (
    IMAGES_MEMBER,
    ArchiveWriter,
    BackupPart,
    Manifest,
    TablePart,
    create_archive,
    write_images,
)
from store.database import Store
from store.migrations import revision_of
from store.progress import Megabytes, Progress
from store.queries.audit import has_audit_log, record_deed
from store.queries.backup import copied_tables, copy_out, count_rows, read_counters, set_copy_format
from store.queries.blobs import blob_bytes, blobs_in_use, lock_blobs_shared, own_library_id


def back_up(store: Store, out: Path, progress: Progress) -> Manifest:
    """Write the whole library as of now to ``out``, atomically.

    Watching and asking continue meanwhile; deletions wait for the end. A missing or damaged image
    is left out and listed in the manifest.

    Raises:
        InputError: ``out`` exists already, or cannot be written.
        DatabaseError: The database cannot be reached.
    """
    # The blobs are locked first, so that those in the snapshot cannot be removed.
    with create_archive(out) as archive, store.begin() as locking:
        lock_blobs_shared(locking)
        with store.begin(snapshot=True) as session:
            manifest = _write_parts(store, session, archive, progress)
        archive.close(manifest)
        faults.fault_point(faults.FaultPoint.BACKUP_PLACING)
    with store.begin() as session:
        if has_audit_log(session):  # A library older than the audit log is backed up as it is.
            record_deed(session, Deed.BACKED_UP)
    return manifest


def _write_parts(
    store: Store, session: Session, archive: ArchiveWriter, progress: Progress
) -> Manifest:
    connection = session.connection()
    set_copy_format(connection)
    tables = tuple(_write_tables(connection, archive, progress))
    faults.fault_point(faults.FaultPoint.BACKUP_ROWS)
    # A library without images needs its folder too, so that no other takes its id.
    store.blobs.make()
    blobs, images, missing = _write_blobs(store, session, archive, progress)
    faults.fault_point(faults.FaultPoint.BACKUP_IMAGES)
    return Manifest(
        revision=str(revision_of(connection)),
        library=own_library_id(session),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tables=tables,
        blobs=blobs,
        images=images,
        missing=tuple(missing),
    )


def _write_tables(
    connection: Connection, archive: ArchiveWriter, progress: Progress
) -> Iterator[TablePart]:
    tables = copied_tables(connection)
    progress.start("rows", count_rows(connection, tables))
    for table in tables:
        with archive.part(f"tables/{table.schema or 'homer'}.{table.name}") as file:
            copy_out(connection, table, file.write)
        progress.step(file.lines)
        yield TablePart(
            schema_name="checkpoints" if table.schema else "",
            table=table.name,
            columns=table.columns,
            counters=read_counters(connection, table),
            rows=file.lines,
            part=file.manifest_entry(),
        )


def _write_blobs(
    store: Store, session: Session, archive: ArchiveWriter, progress: Progress
) -> tuple[int, BackupPart, list[str]]:
    """Write all blobs; return their count, their part, and those that could not be read."""
    progress_mb = Megabytes(progress, "images, MB", blob_bytes(session))
    count, missing = 0, list[str]()

    def readable_blobs() -> Iterator[tuple[str, bytes]]:
        nonlocal count
        for sha in blobs_in_use(session):
            try:
                data = store.blobs.get(sha)
            except DatabaseError:
                missing.append(sha)
                continue
            count += 1
            progress_mb.step(len(data))
            yield sha, data

    with archive.part(IMAGES_MEMBER, packed=False) as file:
        write_images(file, readable_blobs())
    return count, file.manifest_entry(), missing
