"""Restore: a whole library from a back-up into an empty one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.errors import DatabaseError, InputError
from domain.limits import LIMITS, ImportLimits
from store.archive import BackupArchive, Manifest, open_archive
from store.checkpoint_values import check_value
from store.database import Store
from store.failures import is_failure
from store.migrations import HEAD, move
from store.progress import Megabytes, Progress
from store.queries.audit import kept_lines, note, put_back
from store.queries.backup import (
    CopiedTable,
    checkpoint_values,
    close_to_others,
    copy_in,
    filled,
    measure,
    merge_in,
    name_library,
    plain_values,
    set_counters,
    tables_of,
)
from store.queries.blobs import blobs_in_use, hold_blobs, library_of
from store.sweep import sweep_blobs
from store.tables.audit import AuditRow


def check_archive(path: Path, progress: Progress, limits: ImportLimits = LIMITS) -> Manifest:
    """Verify a back-up against its checksums; nothing is changed.

    Raises:
        InputError: It is not a back-up, is damaged or altered, is from a newer version, or exceeds
            a limit.
    """
    with open_archive(path, limits) as archive:
        manifest = archive.manifest
        checked = Megabytes(progress, "checking, MB", sum(part.size for part in manifest.parts()))
        archive.verify(checked.step)
    if manifest.revision > HEAD:
        raise InputError(
            f"{path} is at revision {manifest.revision}, this Homer at {HEAD}: a newer Homer made "
            "it, so install that one"
        )
    return manifest


def restore(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = LIMITS
) -> Manifest:
    """Fill an empty library from a back-up that ``check_archive`` verified.

    One transaction: all of it or nothing. An older back-up is loaded into the tables of its
    revision, which are then migrated.

    Raises:
        InputError: The library is not empty, or the file was changed since.
        DatabaseError: The database cannot be reached, or rejects a row.
    """
    with open_archive(path, limits) as archive:
        refuse_filled(store)
        _take_id(store, archive.manifest.library)
        sweep_blobs(store)  # left by a restore that was killed
        try:
            with store.begin() as session:
                _restore_rows(store, session, archive, progress)
        except BaseException:
            with suppress(DatabaseError):
                sweep_blobs(store)
            raise
        faults.fault_point(faults.FaultPoint.RESTORED)
        return archive.manifest


def refuse_filled(store: Store) -> None:
    """Check that the library is empty.

    Raises:
        InputError: It has rows.
    """
    with store.begin() as session:
        _refuse_filled(session.connection())


def _refuse_filled(connection: Connection) -> None:
    if tables := filled(connection):
        raise InputError(
            f"this library is not empty (rows of {', '.join(tables[:3])}): restore into an empty "
            "HOMER_HOME or database"
        )


def _take_id(store: Store, name: str) -> None:
    """Give the library the back-up's id, unless another in this data directory has it."""
    with store.begin() as session:
        if library_of(session) != name and not (store.home.blobs / name).exists():
            name_library(session, name)
    store.blobs.make()


def _restore_rows(
    store: Store, session: Session, archive: BackupArchive, progress: Progress
) -> None:
    connection, library, manifest = session.connection(), library_of(session), archive.manifest
    hold_blobs(session)
    close_to_others(connection)
    _refuse_filled(connection)
    plain_values(connection)
    log = kept_lines(session)  # The tables of an older back-up have no log.
    move(connection, manifest.revision)
    try:
        _fill_tables(connection, archive, progress)
        move(connection, HEAD)
        put_back(session, log)
        for kind, value in checkpoint_values(connection):
            check_value(kind, value)
    except (DBAPIError, psycopg.Error) as exc:
        if is_failure(exc):
            raise
        raise InputError("the back-up's rows do not fit its tables: it was altered") from exc
    faults.fault_point(faults.FaultPoint.RESTORED_ROWS)
    name_library(session, library)
    note(session, Deed.RESTORED)
    measure(connection)
    _fill_images(store, session, archive, progress)
    faults.fault_point(faults.FaultPoint.RESTORED_IMAGES)


def _fill_images(
    store: Store, session: Session, archive: BackupArchive, progress: Progress
) -> None:
    """Store the images that rows name, except those missing when the back-up was made."""
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


def _fill_tables(connection: Connection, archive: BackupArchive, progress: Progress) -> None:
    tables = {(table.schema, table.name): table for table in tables_of(connection)}
    progress.start("rows", sum(table.rows for table in archive.manifest.tables))
    for part in archive.manifest.tables:
        table = tables.get((part.schema_name, part.table))
        if table is None or not set(part.columns) <= set(table.columns):
            raise InputError(f"the back-up was altered: no table is like its {part.table}")
        target = CopiedTable(part.schema_name, part.table, part.columns, table.counted)
        # This library's audit log is kept; an emptied library may share lines with its back-up.
        copy = merge_in if target.name == AuditRow.__tablename__ else copy_in
        if copy(connection, target, archive.rows(part.part)) != part.rows:
            raise InputError(f"the back-up was altered: {part.table} has other rows than it says")
        set_counters(connection, target, part.counters)
        progress.step(part.rows)
