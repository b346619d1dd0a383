"""The original file of a video, verified by its content's digest.

The path in the library may come from a back-up of another machine, and name any file of the user's.
So its digest is compared before a file is served. That reads all of it, so the result is cached as
long as the file's path, size and times stay the same.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
import shutil
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from domain.errors import MediaError
from perception.containers import open_media
from perception.source import video_id
from store.home import Home

_ID = re.compile("[0-9a-f]{16}")
_TYPES = {
    "mov": "video/mp4",
    "matroska": "video/webm",
    "ogg": "video/ogg",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "aac": "audio/aac",
}
"""Types of containers that browsers play, by the names of FFmpeg's readers."""
_LOCK = threading.Lock()
"""Lets one of several concurrent requests for a file read it."""


def original_file(home: Home, video: str, path: str | None) -> Path | None:
    """Return the file at ``path`` if its content is the video's; else None.

    Args:
        home: the data directory, which has the cached results.
        video: the id, which is the digest of the content.
    """
    file = Path(path) if path else None
    if file is None or not _ID.fullmatch(video):
        return None
    with _LOCK:
        digest = _digest(home, video, file)
    return file if digest == video else None


@lru_cache(1024)
def media_type(file: Path) -> str:
    """Return the type of a file by its container; never one of a page, whatever it is called."""
    with suppress(MediaError), open_media(file) as container:
        if (kind := container.format.name.partition(",")[0]) in _TYPES:
            return _TYPES[kind]
    by_name = mimetypes.guess_type(file.name)[0] or ""
    return by_name if by_name.startswith(("video/", "audio/")) else "application/octet-stream"


def cache_original(home: Home, video: str, stamp: str | None) -> None:
    """Cache that a file is a video's original; its `stamp_of` was taken before it was read."""
    if stamp is not None:
        _write_cache(home, video, stamp, video)


def drop_cached_original(home: Home, video: str) -> None:
    """Delete the cached result for a video's file, and the previews of it."""
    with suppress(OSError):
        _cache_path(home, video).unlink()
    shutil.rmtree(previews_of(home, video), ignore_errors=True)


def previews_of(home: Home, video: str) -> Path:
    """Return the folder of what is cut out of a video's file for browsers that cannot play it."""
    return home.run / "previews" / video


def stat_digest(file: Path) -> str | None:
    """Return a digest of a file's path, inode, size and times, which changes when it does."""
    try:
        stat = file.stat()
        if not file.is_file():
            return None
    except (OSError, ValueError):
        return None
    fields = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return hashlib.sha256(f"{file}\0{fields}".encode(errors="surrogatepass")).hexdigest()


def _digest(home: Home, video: str, file: Path) -> str | None:
    """Return the video id of a file's content, from the cache if the file is unchanged."""
    stamp = stat_digest(file)
    if stamp is None:
        return None
    with suppress(OSError, ValueError):
        cached_stamp, digest = _cache_path(home, video).read_text("ascii").split()
        if cached_stamp == stamp:
            return digest
    try:
        digest = video_id(file)
    except (MediaError, OSError):
        return None
    _write_cache(home, video, stamp, digest)
    return digest


def _write_cache(home: Home, video: str, stamp: str, digest: str) -> None:
    """Write the cache file atomically; without it the file is read again next time."""
    path = _cache_path(home, video)
    partial = path.with_name(f"{video}.{threading.get_ident()}.part")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.write_text(f"{stamp} {digest}", "ascii")
        partial.replace(path)


def _cache_path(home: Home, video: str) -> Path:
    return home.run / "originals" / video
