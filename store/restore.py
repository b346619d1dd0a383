"""A whole library out of the file of a back-up, into an empty one."""

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
    """Read a back-up to its end against its checksums; nothing is changed.

    Raises:
        InputError: it is none, is torn or altered, is a newer Homer's, or is beyond a limit.
    """
    with open_archive(path, limits) as archive:
        found = archive.manifest
        told = Megabytes(progress, "checking, MB", sum(part.size for part in found.parts()))
        archive.verify(told.step)
    if found.revision > HEAD:
        raise InputError(
            f"{path} is at revision {found.revision}, this Homer at {HEAD}: a newer Homer made "
            "it, so install that one"
        )
    return found


def restore(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = LIMITS
) -> Manifest:
    """Fill an empty library from a back-up that `check_archive` found whole.

    One transaction: all of it or nothing. An older back-up is filled into the tables of its time,
    which are then brought up to date.

    Raises:
        InputError: the library is not empty, or the file is not what it was.
        DatabaseError: the database is gone, or refuses a row.
    """
    with open_archive(path, limits) as archive:
        refuse_filled(store)
        _take_name(store, archive.manifest.library)
        sweep_blobs(store)  # of a restoring that was killed
        try:
            with store.begin() as session:
                _fill(store, session, archive, progress)
        except BaseException:
            with suppress(DatabaseError):
                sweep_blobs(store)
            raise
        faults.fault_point(faults.FaultPoint.RESTORED)
        return archive.manifest


def refuse_filled(store: Store) -> None:
    """Passes where the library has no row.

    Raises:
        InputError: it has some.
    """
    with store.begin() as session:
        _refuse_filled(session.connection())


def _refuse_filled(connection: Connection) -> None:
    if found := filled(connection):
        raise InputError(
            f"this library is not empty (rows of {', '.join(found[:3])}): restore into an empty "
            "HOMER_HOME or database"
        )


def _take_name(store: Store, name: str) -> None:
    """The library goes on under its name, unless another in this data directory has it."""
    with store.begin() as session:
        if library_of(session) != name and not (store.home.blobs / name).exists():
            name_library(session, name)
    store.blobs.make()


def _fill(store: Store, session: Session, archive: BackupArchive, progress: Progress) -> None:
    connection, own, told = session.connection(), library_of(session), archive.manifest
    hold_blobs(session)
    close_to_others(connection)
    _refuse_filled(connection)
    plain_values(connection)
    log = kept_lines(session)  # An older back-up's tables have no log.
    move(connection, told.revision)
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
    name_library(session, own)
    note(session, Deed.RESTORED)
    measure(connection)
    _fill_images(store, session, archive, progress)
    faults.fault_point(faults.FaultPoint.RESTORED_IMAGES)


def _fill_images(
    store: Store, session: Session, archive: BackupArchive, progress: Progress
) -> None:
    """Stores the images: those that rows name, but for what was missing from the library."""
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
    known = {(one.schema, one.name): one for one in tables_of(connection)}
    progress.start("rows", sum(one.rows for one in archive.manifest.tables))
    for part in archive.manifest.tables:
        table = known.get((part.schema_name, part.table))
        if table is None or not set(part.columns) <= set(table.columns):
            raise InputError(f"the back-up was altered: no table is like its {part.table}")
        held = CopiedTable(part.schema_name, part.table, part.columns, table.counted)
        # What was done here stays on record; a library that was emptied has lines of its back-up.
        fill = merge_in if held.name == AuditRow.__tablename__ else copy_in
        if fill(connection, held, archive.rows(part.part)) != part.rows:
            raise InputError(f"the back-up was altered: {part.table} has other rows than it says")
        set_counters(connection, held, part.counters)
        progress.step(part.rows)
