"""Files that a person gave to the app: kept in the data directory under safe names."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from store.home import Home
from store.private import create_private, make_private

LONGEST = 100
MOST_BYTES = 200
"""Of a name without its ending; a file system takes 255 in all."""
DIGITS = 16
"""Of the digest of what is in a file: the id of its video, and the folder of its upload."""

_ID = re.compile(f"[0-9a-f]{{{DIGITS}}}")
_OTHER = re.compile(r"[^\w .()\-]+")


def keep_upload(home: Home, name: str, data: bytes) -> Path:
    """Writes an upload, and returns where it is; the same one twice is one file.

    The folder is the digest of what is in it. Of the name only letters, digits and a few signs
    stay, so that it chooses no place.
    """
    folder = home.uploads / hashlib.sha256(data).hexdigest()[:DIGITS]
    make_private(folder)
    path = folder / safe_name(name)
    if not path.exists():
        aside = path.with_name(f"{path.name}.new")
        with os.fdopen(create_private(aside), "wb") as file:
            file.write(data)
        aside.replace(path)
    return path


def uploads_of(home: Home, video: str) -> list[Path]:
    """The files of a video as the app kept them; what else lies beside them is somebody's own.

    Args:
        home: the data directory.
        video: the id, which is the digest of what is in the file.
    """
    folder = home.uploads / video
    if not _ID.fullmatch(video) or folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if _is_kept(path, video)]


def drop_uploads(home: Home, video: str) -> list[Path]:
    """Removes the files of a video that the app kept; returns what is gone."""
    gone = uploads_of(home, video)
    for path in gone:
        path.unlink()
    if gone and not any(gone[0].parent.iterdir()):
        gone[0].parent.rmdir()
    return gone


def _is_kept(path: Path, video: str) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS] == video


def safe_name(name: str) -> str:
    """``name`` as a plain file name: no folders, nothing hidden, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    plain = " ".join(_OTHER.sub(" ", stem if dot else last).split()).strip(". ")
    ending = re.sub(r"\W", "", suffix)[:8] if dot else ""
    stem = plain[:LONGEST].encode()[:MOST_BYTES].decode(errors="ignore").strip()
    return f"{stem or 'video'}{'.' + ending if ending else ''}"
