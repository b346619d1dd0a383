"""The button that saves a moment of a video as a file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from domain.errors import InputError
from domain.media import Video
from domain.time import TimeSpan
from domain.words import format_number, format_span, translate
from flows.cut import cut_moment
from store.database import Store
from ui.player import is_playable

LEAST_MS = 2_000
"""A shorter moment, such as that of an image, is saved with what follows."""
MOST_MS = 10 * 60_000
"""A longer span is no moment: the server holds a saved file in memory. `homer clip` takes any."""
MOST_BYTES = 10**9
"""Largest file that is saved so."""
MAX_TITLE_CHARS = 60
"""Characters of a title in a file's name."""


def save_button(store: Store, video: Video, span: TimeSpan, key: str) -> None:
    """Draw a button that saves a moment as MP4; nothing where there is no file to cut it from.

    Nothing is drawn of longer spans, such as chapters. It is cut only once the button is pressed.
    """
    if span.length_ms > MOST_MS or not is_playable(store, video, span.start_ms):
        return
    whole = TimeSpan.of(span.start_ms, max(span.end_ms, span.start_ms + LEAST_MS))
    # A name of characters that any file system takes.
    plain = "".join(char if char.isalnum() or char in " -_" else " " for char in video.title)
    title = " ".join(plain.split())[:MAX_TITLE_CHARS].strip() or "video"
    name = f"{title} {format_span(whole).replace(':', '.')}.mp4"
    st.download_button(
        translate("Save this moment"),
        lambda: _cut(store, video, whole),
        name,
        "video/mp4",
        key=f"save_{key}",
        help=translate("Save {time} as an MP4 file").format(time=format_span(whole)),
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def _cut(store: Store, video: Video, span: TimeSpan) -> bytes:
    """Return a moment as an MP4 file.

    Raises:
        InputError: the file or recording is gone, or the moment is too large.
        MediaError: nothing decodes there.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder) / "moment.mp4"
        cut_moment(store, video.id, span, out)
        if out.stat().st_size > MOST_BYTES:
            raise InputError(
                translate("it is larger than {size} GB: use `homer clip`").format(
                    size=format_number(MOST_BYTES / 1e9, "g")
                )
            )
        return out.read_bytes()
