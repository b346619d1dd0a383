"""The player: seeks to the moment that a chip or the address names, and stays where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from domain.media import Video
from domain.time import TimeSpan
from ui.files import file_of
from ui.parts import mount
from ui.signing import signed
from ui.times import from_to, hms
from ui.words import plain


def player(video: Video, start_ms: int = 0, key: str = "player") -> None:
    """Plays a video from ``start_ms``, or from the moment that was sought last.

    Args:
        video: the video.
        start_ms: where it stands until a moment is sought.
        key: of the player on its page.
    """
    if file_of(video) is None:
        st.info(_missing(video))
        return
    name, at, times = st.session_state.get(_state(key), ("", start_ms, 0))
    if name != video.id:
        at, times = start_ms, 0
    data: dict[str, Any] = {
        "name": key,
        "file": video.id,
        "url": signed(f"/video/{video.id}"),
        "label": f"Video: {video.title}",
        "start_s": at / 1000,
        "seek": f"{times}:{at}",
        "play": times > 0,
    }
    mount("player")(key=key, data=data)


def seek(video: str, at_ms: int, key: str = "player") -> None:
    """Have the player go to a moment; a second time to the same one too."""
    _name, _at, times = st.session_state.get(_state(key), ("", 0, 0))
    st.session_state[_state(key)] = (video, at_ms, times + 1)


def chip(video: str, span: TimeSpan, label: str, key: str, player_key: str = "player") -> bool:
    """A button that plays a moment; True when it was pressed."""
    return st.button(
        f"▶ {from_to(span)}  {label}".strip(),
        key=key,
        help=f"Play from {hms(span.start_ms)}",
        on_click=seek,
        args=(video, span.start_ms, player_key),
    )


def _missing(video: Video) -> str:
    again = "add it again from where it is: what is remembered of it stays."
    if not video.path:
        told = "it has captions only, was watched live, or came with an import"
        return f"There is no film to play: {told}. If you have its file, {again}"
    there = Path(video.path).is_file()
    told = "is another one by now" if there else "is not there any more"
    return f"The file at {plain(video.path)} {told}. Put it back, or {again}"


def _state(key: str) -> str:
    return f"sought by {key}"
