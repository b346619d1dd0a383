"""Restoring a library, and importing a video: the file is checked first, then room is made."""

from __future__ import annotations

import os
from pathlib import Path

from domain.limits import LIMITS, ImportLimits
from graphs.checkpoints import make_checkpoint_tables
from store.archive import Manifest
from store.database import Store, open_store
from store.export_reader import open_parcel
from store.home import Home
from store.import_video import ImportedVideo, import_video
from store.migrations import has_tables, migrate
from store.progress import Progress
from store.restore import check_archive, refuse_filled, restore


def restore_library(
    home: Home, path: Path, progress: Progress, limits: ImportLimits = LIMITS
) -> Manifest:
    """Fill the empty library of ``home`` from a back-up.

    A database of ``$HOMER_DATABASE_URL`` that has no tables yet gets them.

    Raises:
        InputError: the file is no back-up, is torn or altered, is beyond a limit, or the library
            is not empty; then nothing was changed.
        DatabaseError: the database cannot be reached or gave up; then no row is in it.
    """
    told = check_archive(path, progress, limits)
    with _open(home) as store:
        refuse_filled(store)
        if any(one.schema_name for one in told.tables):
            make_checkpoint_tables(store)
        return restore(store, path, progress, limits)


def import_export(
    store: Store, path: Path, progress: Progress, limits: ImportLimits = LIMITS
) -> ImportedVideo:
    """Add the video of an export to a library.

    Raises:
        InputError: the file is no export, is torn or altered, is beyond a limit, or the video is
            here already; then nothing was changed.
        DatabaseError: the database gave up; then nothing of the video is in it.
    """
    with open_parcel(path, limits) as parcel:
        contents = parcel.contents()
        if contents.has_checkpoints:
            make_checkpoint_tables(store)
        return import_video(store, parcel, contents, progress)


def _open(home: Home) -> Store:
    url = os.environ.get("HOMER_DATABASE_URL")
    if url and not has_tables(url):
        migrate(url)
    return open_store(home)
