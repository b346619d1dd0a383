"""Files that a person gave to the app: kept in the data directory under safe names."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from store.home import Home

LONGEST = 100
_OTHER = re.compile(r"[^\w .()\-]+")


def keep_upload(home: Home, name: str, data: bytes) -> Path:
    """Writes an upload, and returns where it is; the same one twice is one file.

    The folder is the digest of what is in it. Of the name only letters, digits and a few signs
    stay, so that it chooses no place.
    """
    folder = home.uploads / hashlib.sha256(data).hexdigest()[:16]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / safe_name(name)
    if not path.exists():
        aside = path.with_name(f"{path.name}.new")
        aside.write_bytes(data)
        aside.replace(path)
    return path


def drop_upload(home: Home, path: str | None) -> bool:
    """Removes a file where it is an upload; False where it is somebody's own, which stays."""
    found = Path(path) if path else None
    if found is None or home.uploads not in found.parents or not found.is_file():
        return False
    found.unlink()
    if not any(found.parent.iterdir()):
        found.parent.rmdir()
    return True


def safe_name(name: str) -> str:
    """``name`` as a plain file name: no folders, nothing hidden, not too long."""
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, suffix = last.rpartition(".")
    plain = " ".join(_OTHER.sub(" ", stem if dot else last).split()).strip(". ")
    ending = re.sub(r"\W", "", suffix)[:8] if dot else ""
    return f"{plain[:LONGEST].strip() or 'video'}{'.' + ending if ending else ''}"
