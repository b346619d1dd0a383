"""The player: seeks to the moment that a chip or the address names, and stays where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from auth.signed_links import signed
from domain.media import Video
from domain.time import TimeSpan
from store.database import Store
from ui.app_state import page_desk
from ui.files import file_of
from ui.images import image_of
from ui.parts import mount
from ui.times import from_to, hms
from ui.words import plain
from views.moment import frames_around
from views.streams import load_stream_details


def player(video: Video, start_ms: int = 0, key: str = "player") -> None:
    """Plays a video from ``start_ms``, or from the moment that was sought last.

    Of what has no film, such as a stream, the keyframes of that moment are shown.

    Args:
        video: the video.
        start_ms: where it stands until a moment is sought.
        key: of the player on its page.
    """
    name, at, times = st.session_state.get(_state(key), ("", start_ms, 0))
    if name != video.id:
        at, times = start_ms, 0
    if file_of(video) is None:
        _without_film(page_desk().store, video, at)
        return
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
        help=f"Go to {hms(span.start_ms)}",
        on_click=seek,
        args=(video, span.start_ms, player_key),
    )


def _without_film(store: Store, video: Video, at_ms: int) -> None:
    """Why nothing plays, and what was to be seen around the moment."""
    st.info(_missing(video, is_stream=load_stream_details(store, video.id) is not None))
    frames = [(one, image_of(store, one.blob)) for one in frames_around(store, video.id, at_ms)]
    with st.container(horizontal=True, key=f"frames_of_{video.id}"):
        for frame, data in frames:
            if data:
                told = hms(frame.time_ms)
                alt = frame.description or f"Frame of the video at {told}"
                st.image(data, caption=told, alt=alt, width=190)


def _missing(video: Video, *, is_stream: bool) -> str:
    if not video.path and is_stream:
        return "This stream was not recorded: its keyframes are what is left to see of a moment."
    again = "add it again from where it is: what is remembered of it stays."
    if not video.path:
        told = "it has captions only, or came with an import"
        return f"There is no film to play: {told}. If you have its file, {again}"
    there = Path(video.path).is_file()
    told = "is another one by now" if there else "is not there any more"
    return f"The file at {plain(video.path)} {told}. Put it back, or {again}"


def _state(key: str) -> str:
    return f"sought by {key}"
