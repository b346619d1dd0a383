"""Restoring a library and importing a video; the file is checked before anything is changed."""

from __future__ import annotations

import os
from pathlib import Path

from domain.settings import DEFAULT_LIMITS, ImportLimits
from domain.watching import Imported
from store.archive import Manifest
from store.backup import check_archive, require_empty_library, restore_backup
from store.database import Store, open_store
from store.export import import_video, open_export
from store.home import Home
from store.migrations import has_tables, migrate
from store.progress import Progress


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


def import_exported_video(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = DEFAULT_LIMITS
) -> Imported:
    """Import the video of an export into a library.

    Raises:
        InputError: the file is no export, is incomplete or altered, exceeds a limit, or the video
            is in the library already; nothing was changed.
        DatabaseError: the database failed; nothing of the video was stored.
    """
    with open_export(path, limits) as parcel:
        return import_video(store, parcel, parcel.contents(), progress)
