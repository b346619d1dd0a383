"""Files that were uploaded to the app, stored in the data directory under safe names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from domain.errors import InputError
from perception.source import SUFFIXES
from store.files import make_private
from store.home import Home

MAX_CHARACTERS = 100
MAX_BYTES = 200
"""Limits of a name without its suffix; a file system allows 255 bytes in all."""
DIGITS = 16
"""Of the digest of a file's content: the id of its video, and the folder of its upload."""

PART = ".part-"
"""Prefix of a file's name while it is written."""

_ID = re.compile(f"[0-9a-f]{{{DIGITS}}}")
_OTHER = re.compile(r"[^\w .()\-]+")


def store_upload(home: Home, name: str, data: bytes | memoryview) -> Path:
    """Write an upload and return its path; the same file twice is stored once.

    The folder is named by the digest of the content. Only letters, digits and a few signs of the
    name are used, so that it cannot choose a path. A file that exists already is reused only if
    its content is the same.

    Raises:
        InputError: the file is empty, or cannot be written; nothing of it remains.
    """
    if not data:
        raise InputError(f"{safe_name(name)}: the file is empty; nothing was uploaded")
    video = hashlib.sha256(data).hexdigest()[:DIGITS]
    path = home.uploads / video / safe_name(name)
    try:
        if path.parent.is_symlink():
            raise InputError(f"{path.parent} leads elsewhere: remove that link")
        make_private(path.parent)
        if not (path.exists() and _is_upload(path, video)):
            with NamedTemporaryFile(dir=path.parent, prefix=PART, delete=False) as partial:
                try:
                    partial.write(data)
                    partial.flush()
                    Path(partial.name).replace(path)
                except BaseException:
                    Path(partial.name).unlink(missing_ok=True)
                    raise
    except OSError as error:
        with suppress(OSError):
            path.parent.rmdir()
        why = error.strerror or type(error).__name__
        raise InputError(f"{path.name} cannot be kept in {home.uploads} ({why})") from error
    return path


def move_upload(home: Home, name: str, file: Path) -> Path:
    """Move a file of the data directory among the uploads, and return its path.

    Raises:
        InputError: the file is empty, or cannot be moved.
    """
    if not file.stat().st_size:
        raise InputError("the file is empty")
    with file.open("rb") as opened:
        video = hashlib.file_digest(opened, "sha256").hexdigest()[:DIGITS]
    path = home.uploads / video / safe_name(name)
    if path.parent.is_symlink():
        raise InputError(f"{path.parent} leads elsewhere: remove that link")
    try:
        make_private(path.parent)
        file.replace(path)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(f"{path.name} cannot be kept in {home.uploads} ({why})") from error
    return path


def uploaded_files(home: Home, video: str) -> list[Path]:
    """Return the uploaded files of a video, without other files in the same folder.

    Args:
        video: the id, which is the digest of the file's content.
    """
    folder = home.uploads / video
    if not _ID.fullmatch(video) or folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in sorted(folder.iterdir()) if _is_upload(path, video)]


def delete_uploads(home: Home, video: str) -> list[Path]:
    """Delete the uploaded files of a video; return the deleted files."""
    files = uploaded_files(home, video)
    for path in files:
        path.unlink()
    if files and not any(files[0].parent.iterdir()):
        files[0].parent.rmdir()
    return files


def _is_upload(path: Path, video: str) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS] == video


def safe_name(name: str) -> str:
    """Return ``name`` as a plain file name: no folders, not hidden, not too long.

    Its suffix is one of media, or it has none: no program takes the file for a page or a script.
    """
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    ending = dot + re.sub(r"\W", "", suffix)
    if ending.lower() not in SUFFIXES:
        stem, ending = last.replace(".", " "), ""
    plain = " ".join(_OTHER.sub(" ", stem).split()).strip(". ")
    stem = plain[:MAX_CHARACTERS].encode()[:MAX_BYTES].decode(errors="ignore").strip()
    return f"{stem or 'video'}{ending}"


# Files in the folders that an operator allows others to add videos from.


def paths_within(folders: Sequence[Path], given: str) -> list[Path]:
    """Return what a path, absolute or relative to a folder, names in each; links are followed."""
    found = list[Path]()
    for folder in folders:
        with suppress(OSError, ValueError, RuntimeError):  # NUL, lone surrogates, circular links
            root = folder.resolve()
            path = (root / given).resolve()
            if path != root and path.is_relative_to(root):
                found.append(path)
    return found


def first_file(paths: Iterable[Path]) -> Path | None:
    with suppress(OSError):  # The name is not valid.
        return next((path for path in paths if path.is_file()), None)
    return None
