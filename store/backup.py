"""Back-ups: the whole library in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain import faults
from domain.errors import DatabaseError, InputError
from domain.rights import Deed
from domain.settings import DEFAULT_LIMITS, ImportLimits
from store.archive import (
    IMAGES_MEMBER,
    RIGHTS_TABLES,
    ArchiveWriter,
    BackupArchive,
    BackupPart,
    Manifest,
    TablePart,
    create_archive,
    open_archive,
    write_images,
)
from store.database import Store, open_store, remove_orphaned_blobs
from store.driver import is_database_failure
from store.home import Home
from store.migrations import HEAD, has_tables, migrate, refresh_viewer_role
from store.progress import Megabytes, Progress
from store.queries.backup import (
    CopiedTable,
    analyze_tables,
    copied_tables,
    copy_in,
    copy_out,
    count_rows,
    lock_all_tables,
    merge_in,
    read_counters,
    set_copy_format,
    set_counters,
    set_library_id,
    tables_with_rows,
)
from store.queries.blobs import blob_bytes, blobs_in_use, lock_blobs_shared, own_library_id
from store.queries.encoders import LibraryEncoders, encoders_of_library, require_encoders
from store.queries.rights import record_deed
from store.tables.library import AuditRow


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
            connection = session.connection()
            set_copy_format(connection)
            parts = list[TablePart]()
            copied = copied_tables()
            progress.start("rows", count_rows(connection, copied))
            for table in copied:
                with archive.part(f"tables/{table.name}") as file:
                    copy_out(connection, table, file.write)
                progress.step(file.lines)
                parts.append(
                    TablePart(
                        table=table.name,
                        columns=table.columns,
                        counters=read_counters(connection, table),
                        rows=file.lines,
                        part=file.manifest_entry(),
                    )
                )
            tables = tuple(parts)
            faults.fault_point(faults.FaultPoint.BACKUP_ROWS)
            # A library without images needs its folder too, so that no other takes its id.
            store.blobs.make()
            blobs, images, missing = _write_blobs(store, session, archive, progress)
            faults.fault_point(faults.FaultPoint.BACKUP_IMAGES)
            manifest = Manifest(
                revision=HEAD,
                library=own_library_id(session),
                encoders=encoders_of_library(session),
                made_at=datetime.now(UTC).isoformat(timespec="seconds"),
                tables=tables,
                blobs=blobs,
                images=images,
                missing=tuple(missing),
            )
        archive.close(manifest)
        faults.fault_point(faults.FaultPoint.BACKUP_PLACING)
    with store.begin() as session:
        record_deed(session, Deed.BACKED_UP)
    return manifest


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


def check_archive(
    path: Path, progress: Progress, limits: ImportLimits = DEFAULT_LIMITS
) -> Manifest:
    """Verify a back-up against its checksums; nothing is changed.

    Raises:
        InputError: It is not a back-up, is damaged or altered, is of another revision of the
            tables, or exceeds a limit.
    """
    with open_archive(path, limits) as archive:
        manifest = archive.manifest
        checked = Megabytes(progress, "checking, MB", sum(part.size for part in manifest.parts()))
        archive.verify(checked.step)
    if manifest.revision != HEAD:
        raise InputError(
            f"{path} is at revision {manifest.revision}, this Homer at {HEAD}: restore it with the "
            "Homer that made it"
        )
    return manifest


def restore_backup(
    store: Store,
    path: Path,
    progress: Progress,
    limits: ImportLimits = DEFAULT_LIMITS,
    *,
    rights: bool = False,
) -> Manifest:
    """Fill an empty library from a back-up that ``check_archive`` verified.

    One transaction: all of it or nothing.

    Raises:
        InputError: The library is not empty, or the file was changed since.
        DatabaseError: The database cannot be reached, or rejects a row.
    """
    # Without ``rights`` it is only restored whether rights are enforced, and not who has them: the
    # file may come from somebody who gave themselves all.
    with open_archive(path, limits) as archive:
        require_empty_library(store)
        # The library gets the back-up's id, unless another in this data directory has it.
        with store.begin() as session:
            if (
                own_library_id(session) != archive.manifest.library
                and not (store.home.blobs / archive.manifest.library).exists()
            ):
                set_library_id(session, archive.manifest.library)
        store.blobs.make()
        remove_orphaned_blobs(store)  # left by a restore that was killed
        try:
            with store.begin() as session:
                _restore_rows(store, session, archive, progress, rights=rights)
        except BaseException:
            with suppress(DatabaseError):
                remove_orphaned_blobs(store)
            raise
        faults.fault_point(faults.FaultPoint.RESTORED)
        return archive.manifest


def require_empty_library(store: Store) -> None:
    """Check that the library is empty.

    Raises:
        InputError: It has rows.
    """
    with store.begin() as session:
        _refuse_filled(session.connection())


def _refuse_filled(connection: Connection) -> None:
    if tables := tables_with_rows(connection):
        raise InputError(
            f"this library is not empty (rows of {', '.join(tables[:3])}): restore into an empty "
            "HOMER_HOME or database"
        )


def _restore_rows(
    store: Store, session: Session, archive: BackupArchive, progress: Progress, *, rights: bool
) -> None:
    connection, library = session.connection(), own_library_id(session)
    lock_blobs_shared(session)
    lock_all_tables(connection)
    _refuse_filled(connection)
    set_copy_format(connection)
    require_encoders(session, LibraryEncoders(*archive.manifest.encoders))
    try:
        left_out = () if rights else RIGHTS_TABLES
        tables = {table.name: table for table in copied_tables()}
        progress.start("rows", sum(table.rows for table in archive.manifest.tables))
        for part in archive.manifest.tables:
            table = tables.get(part.table)
            if table is None or set(part.columns) != set(table.columns):
                raise InputError(f"the back-up was altered: no table is like its {part.table}")
            if table.name in left_out:
                progress.step(part.rows)
                continue
            target = CopiedTable(part.table, part.columns, table.counted)
            # This library's audit log is kept; an emptied library may share lines with its back-up.
            copy = merge_in if target.name == AuditRow.__tablename__ else copy_in
            if copy(connection, target, archive.rows(part.part)) != part.rows:
                raise InputError(
                    f"the back-up was altered: {part.table} has other rows than it says"
                )
            set_counters(connection, target, part.counters)
            progress.step(part.rows)
        refresh_viewer_role(connection)
    except (DBAPIError, psycopg.Error) as exc:
        if is_database_failure(exc):
            raise
        raise InputError("the back-up's rows do not fit its tables: it was altered") from exc
    faults.fault_point(faults.FaultPoint.RESTORED_ROWS)
    set_library_id(session, library)
    record_deed(session, Deed.RESTORED)
    analyze_tables(connection)
    images = Megabytes(progress, "images, MB", archive.manifest.images.size)
    named = set(blobs_in_use(session)) - set(archive.manifest.missing)
    for sha, data in archive.images():
        if sha not in named:
            raise InputError("the back-up was altered: it has an image that no row names")
        store.blobs.put(data)
        named.remove(sha)
        images.step(len(data))
    if named:
        raise InputError("the back-up was altered: an image that its rows name is not in it")
    faults.fault_point(faults.FaultPoint.RESTORED_IMAGES)


def restore_library(
    home: Home,
    path: Path,
    progress: Progress,
    limits: ImportLimits = DEFAULT_LIMITS,
    *,
    rights: bool = False,
) -> Manifest:
    """Fill the empty library of ``home`` from a back-up; see ``restore_backup``.

    Tables are created in the database of ``$HOMER_DATABASE_URL`` if it has none.

    Raises:
        InputError: the file is no back-up, is incomplete or altered, exceeds a limit, or the
            library is not empty; nothing was changed.
        DatabaseError: the database cannot be reached or failed; no row was stored.
    """
    check_archive(path, progress, limits)
    url = os.environ.get("HOMER_DATABASE_URL")
    if url and not has_tables(url):
        migrate(url)
    with open_store(home) as store:
        require_empty_library(store)
        return restore_backup(store, path, progress, limits, rights=rights)
