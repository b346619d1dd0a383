"""Back-ups one after another, of which the latest stay."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from domain.errors import InputError
from store.backup import back_up
from store.database import Store
from store.private_files import make_private
from store.progress import Progress

FORM = "homer-%Y%m%d-%H%M%S.homer"
_OURS = re.compile(r"homer-\d{8}-\d{6}\.homer")


def back_up_into(
    store: Store, folder: Path, keep: int, now: datetime, progress: Progress
) -> tuple[Path, list[Path]]:
    """Write a back-up into ``folder``, then remove those of ours but the ``keep`` latest.

    Returns:
        The file, and those that are gone. Where no back-up could be written none is removed.

    Raises:
        InputError: the folder cannot be made or written.
        DatabaseError: the database is gone.
    """
    try:
        if not folder.is_dir():
            make_private(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from error
    out = folder / now.strftime(FORM)
    back_up(store, out, progress)
    return out, drop_old(folder, keep)


def drop_old(folder: Path, keep: int) -> list[Path]:
    """Removes back-ups that a schedule made, but the ``keep`` latest by their names."""
    ours = sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name))
    gone = ours[:-keep]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone
