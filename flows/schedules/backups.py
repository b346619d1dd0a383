"""Periodic back-ups, of which the latest are kept."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from domain.errors import InputError
from store.backup import back_up
from store.database import Store
from store.files import make_private
from store.progress import Progress

BACKUP_NAME_FORMAT = "homer-%Y%m%d-%H%M%S.homer"
_BACKUP_NAME = re.compile(r"homer-\d{8}-\d{6}\.homer")


def back_up_into(
    store: Store, folder: Path, keep: int, now: datetime, progress: Progress
) -> tuple[Path, list[Path]]:
    """Write a back-up into ``folder``, then delete all but the ``keep`` latest.

    Returns:
        The file, and the deleted ones. If no back-up could be written, none is deleted.

    Raises:
        InputError: the folder cannot be created or written.
        DatabaseError: the database is gone.
    """
    try:
        if not folder.is_dir():
            make_private(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from error
    out = folder / now.strftime(BACKUP_NAME_FORMAT)
    back_up(store, out, progress)
    return out, delete_old_backups(folder, keep)


def delete_old_backups(folder: Path, keep: int) -> list[Path]:
    """Delete the back-ups of schedules except the ``keep`` latest, in the order of their names."""
    backups = sorted(path for path in folder.iterdir() if _BACKUP_NAME.fullmatch(path.name))
    deleted = backups[:-keep]
    for path in deleted:
        path.unlink(missing_ok=True)
    return deleted
