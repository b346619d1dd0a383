"""Cuts a moment of a video out of its file."""

from __future__ import annotations

from pathlib import Path

from domain.errors import InputError
from domain.time import TimeSpan
from perception.cut_file import CutFile, cut_file
from perception.originals import original_file
from store.database import Store
from store.files import atomic_file
from views.library import resolve_video


def cut_moment(store: Store, video: str, span: TimeSpan, out: Path) -> CutFile:
    """Write a moment of a video to ``out`` as MP4; see `cut_file`.

    Args:
        store: the store.
        video: the id, beginning of an id, or title.
        span: in milliseconds of video time.
        out: the file to write, which replaces an older one only when it is whole.

    Raises:
        NotFound: there is no such video.
        InputError: the video has no file here, or ends before the span.
        MediaError: nothing decodes in the span.
    """
    with store.begin() as session:
        found = resolve_video(session, video)
    if not found.path:
        raise InputError(
            f"{found.title} has no file to cut from: it came from captions or an import, or was "
            "a stream that was not recorded"
        )
    file = original_file(store.home, found.id, found.path)
    if file is None:
        raise InputError(
            f"{found.path} is missing or has changed since it was watched: put it back, or ingest "
            "it again from its new place"
        )
    with atomic_file(out) as partial:
        return cut_file(file, span, partial)
