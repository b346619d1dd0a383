"""Files that a person gave to the app: kept in the data directory under safe names."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from domain.errors import InputError
from store.home import Home
from store.private_files import make_private

LONGEST = 100
MOST_BYTES = 200
"""Of a name without its ending; a file system takes 255 in all."""
DIGITS = 16
"""Of the digest of what is in a file: the id of its video, and the folder of its upload."""

PART = ".part-"
"""How a file's name begins while it is written."""

_ID = re.compile(f"[0-9a-f]{{{DIGITS}}}")
_OTHER = re.compile(r"[^\w .()\-]+")


def keep_upload(home: Home, name: str, data: bytes) -> Path:
    """Writes an upload, and returns where it is; the same one twice is one file.

    The folder is the digest of what is in it. Of the name only letters, digits and a few signs
    stay, so that it chooses no place. What lies there already is kept only if it is the same.

    Raises:
        InputError: there is nothing in it, or no room for it; nothing of it is left.
    """
    if not data:
        raise InputError(f"{safe_name(name)}: the file is empty; nothing was uploaded")
    video = hashlib.sha256(data).hexdigest()[:DIGITS]
    path = home.uploads / video / safe_name(name)
    try:
        if path.parent.is_symlink():
            raise InputError(f"{path.parent} leads elsewhere: remove that link")
        make_private(path.parent)
        if not (path.exists() and _is_kept(path, video)):
            _write(path, data)
    except OSError as error:
        with suppress(OSError):
            path.parent.rmdir()
        why = error.strerror or type(error).__name__
        raise InputError(f"{path.name} cannot be kept in {home.uploads} ({why})") from error
    return path


def _write(path: Path, data: bytes) -> None:
    """The whole file or none, whoever else writes it at the same time."""
    with NamedTemporaryFile(dir=path.parent, prefix=PART, delete=False) as aside:
        try:
            aside.write(data)
            aside.flush()
            Path(aside.name).replace(path)
        except BaseException:
            Path(aside.name).unlink(missing_ok=True)
            raise


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
