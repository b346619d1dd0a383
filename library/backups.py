"""The database as a whole: backing it up, restoring it, its tables and its search index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from library.params import OnCommandLine
from models.profile import load_profile
from store.archive import Manifest
from store.backup import back_up, check_archive
from store.database import Store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import HEAD, migrate
from store.progress import SILENT, Meter
from store.vector_index import build_index as build_missing_index


def backup(
    store: Store,
    out: Annotated[
        Path,
        Field(description="File to write, which must not exist."),
        OnCommandLine(metavar="OUT", only=True),
    ],
    progress: Meter = SILENT,
) -> Manifest:
    """Back up the whole library to one file.

    It contains all rows, vectors and images, answers with their checkpoints, and skills. It does
    not contain video files, weights or homer.toml. Videos can be watched and questions asked
    meanwhile.

    Examples:
      homer backup library.homer

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    try:
        return back_up(store, out, progress)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; no file was written") from stop


def restore(
    home: Home,
    file: Annotated[
        Path,
        Field(description="File that 'homer backup' wrote."),
        OnCommandLine(metavar="FILE", only=True),
    ],
    check: Annotated[bool, Field(description="Only check that the file is complete.")] = False,
    rights: Annotated[bool, Field(description="Also restore who may see what.")] = False,
    progress: Meter = SILENT,
) -> Manifest:
    """Restore a back-up into an empty library.

    The whole file is checked before anything is changed. A library that is not empty is refused:
    set HOMER_HOME to an empty folder, or HOMER_DATABASE_URL to an empty database.

    Rights stay enforced where they were. Who has them is restored with --rights only.

    Examples:
      HOMER_HOME=~/restored homer restore library.homer

    Raises:
        InputError: the file is no whole back-up, or the library is not empty.
    """
    limits = load_profile(None, home.config).settings.imports
    try:
        if check:
            return check_archive(file, progress, limits)
        # LangGraph's tables are restored too, and LangGraph is slow to import.
        from flows.restore import restore_library

        return restore_library(home, file, progress, limits, rights=rights)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; nothing was changed") from stop


def upgrade_database(home: Home) -> str:
    """Create or upgrade Homer's tables in the database of $HOMER_DATABASE_URL.

    Homer upgrades the embedded database by itself, and a database of yours only by this command.

    Examples:
      HOMER_DATABASE_URL=postgresql://me@db/homer homer db upgrade
    """
    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(home).start()
    return f"the database is {'now' if migrate(url) else 'already'} at revision {HEAD}"


def build_index(store: Store, progress: Meter = SILENT) -> str:
    """Build the search index of a large library, if it is missing.

    'homer ingest' and 'homer import' build it once a library is large. Without it, searches over
    the whole library take longer. Videos can be watched and questions asked meanwhile.

    Examples:
      homer db index
    """
    built = build_missing_index(store, progress)
    return "the index is built" if built else "nothing is missing for a library of this size"
