"""The file that a video was watched from: only one whose content is what the video's id says.

The path that the library has of it may have come from elsewhere, with a back-up, and name any file
of the user's. So before a file is opened for others its digest is compared. That reads all of it,
so the result is kept for as long as the file's place, size and times stay.
"""

from __future__ import annotations

import hashlib
import re
import threading
from contextlib import suppress
from pathlib import Path

from domain.errors import MediaError
from perception.source import video_id
from store.home import Home

_ID = re.compile("[0-9a-f]{16}")
_LOCK = threading.Lock()
"""Of several requests for one file the first reads it."""


def original_of(home: Home, video: str, path: str | None) -> Path | None:
    """The file at ``path``, where its content is the video's; None where it is not, or is gone.

    Args:
        home: the data directory, which keeps what was found.
        video: the id, which is the digest of the content.
        path: where it should be.
    """
    file = Path(path) if path else None
    if file is None or not _ID.fullmatch(video):
        return None
    with _LOCK:
        found = _digest(home, video, file)
    return file if found == video else None


def note_original(home: Home, video: str, stamp: str | None) -> None:
    """Keep what was found of a file, whose `stamp_of` was taken before it was read."""
    if stamp is not None:
        _keep(home, video, stamp, video)


def forget_original(home: Home, video: str) -> None:
    """Drop what is kept of a video's file."""
    with suppress(OSError):
        _place(home, video).unlink()


def stamp_of(file: Path) -> str | None:
    """What changes when a file does: its place, inode, size and times, as a digest."""
    try:
        told = file.stat()
        if not file.is_file():
            return None
    except (OSError, ValueError):
        return None
    facts = (told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns)
    return hashlib.sha256(f"{file}\0{facts}".encode(errors="surrogatepass")).hexdigest()


def _digest(home: Home, video: str, file: Path) -> str | None:
    """The id that the content of a file makes."""
    stamp = stamp_of(file)
    if stamp is None:
        return None
    with suppress(OSError, ValueError):
        kept, found = _place(home, video).read_text("ascii").split()
        if kept == stamp:
            return found
    try:
        found = video_id(file)
    except (MediaError, OSError):
        return None
    _keep(home, video, stamp, found)
    return found


def _keep(home: Home, video: str, stamp: str, found: str) -> None:
    """Whole or not at all; without it the file is read again next time."""
    place = _place(home, video)
    aside = place.with_name(f"{video}.{threading.get_ident()}.part")
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.write_text(f"{stamp} {found}", "ascii")
        aside.replace(place)


def _place(home: Home, video: str) -> Path:
    return home.run / "originals" / video
