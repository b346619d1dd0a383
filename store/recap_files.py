"""The files of recaps in the data directory: ``recaps/PERIOD/VIDEO.md``, and ``all.md`` there.

What is deleted of a video must not remain in them, so its files go with any deletion, and so do the
recaps of all videos. They can be written again from what is left.
"""

from __future__ import annotations

from pathlib import Path

from store.files import atomic_file, make_private
from store.home import Home

ALL = "all"


def write_recap_file(home: Home, period: str, name: str, text: str) -> Path:
    """Write a recap of a video by its id, or of all; return the file."""
    folder = home.recaps / period
    make_private(home.recaps)
    make_private(folder)
    path = folder / f"{name}.md"
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def remove_recap_files(home: Home, video: str) -> None:
    """Remove the files of recaps that a video is in."""
    for name in (video, ALL):
        for path in home.recaps.glob(f"*/{name}.md"):
            path.unlink(missing_ok=True)
