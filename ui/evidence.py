"""A moment as pages show it: its words, the frame nearest to it, and a button that plays it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from domain.asking import Citation, Evidence
from domain.media import Video
from domain.people import tags_in_words
from store.database import Store
from ui.images import image_of
from ui.player import chip
from ui.times import from_to
from ui.words import plain
from views.moment import frame_at

LONGEST = 400
"""Characters of a moment's words that are shown at first."""


def titles(videos: Mapping[str, Video], name: str) -> str:
    """A video's title, else its id."""
    return videos[name].title if name in videos else name


def show_moment(
    store: Store,
    one: Citation | Evidence,
    videos: Mapping[str, Video],
    key: str,
    player_key: str = "player",
) -> None:
    """A citation or a piece of evidence, with a chip that plays it."""
    with st.container(border=True, key=f"moment_{key}"):
        words, frame = st.columns([3, 1])
        with words:
            chip(one.video, one.span, plain(_short(titles(videos, one.video))), key, player_key)
            st.write(plain(_words(one.text)))
            st.caption(plain(f"{one.ref}{_score(one)}"))
        with frame:
            show_frame(store, one.video, one.span.start_ms, one.ref)


def _score(one: Citation | Evidence) -> str:
    """How close evidence is, or how well a citation supports the answer."""
    if isinstance(one, Evidence):
        return f", score {one.score:.2f}"
    return "" if one.support is None else f", support {one.support:.2f}"


def show_frame(store: Store, video: str, at_ms: int, ref: str = "") -> None:
    """The keyframe nearest to a moment, where there is one near."""
    found = frame_at(store, video, at_ms, ref)
    if found is None:
        return
    image = image_of(store, found.blob)
    if image:
        st.image(image, alt=f"Frame of the video at {from_to(found.span)}", width="stretch")


def _words(text: str) -> str:
    told = tags_in_words(text)
    return told if len(told) <= LONGEST else told[:LONGEST].rstrip() + " …"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39].rstrip() + "…"
