"""Which video a page is about: the one that the address names, else one that is chosen."""

from __future__ import annotations

import streamlit as st

from domain.errors import InputError
from domain.media import Video
from store.database import Store
from ui import address
from ui.faults import complain
from views.library import all_titles, videos_named


def chosen_video(store: Store) -> Video | None:
    """The video; None where there is none, which is said."""
    titles = all_titles(store)
    if not titles:
        st.info("Nothing has been watched yet. Add a video on the page Library.")
        return None
    names = list(titles)
    wanted = address.told("video")
    if wanted and wanted not in titles:
        complain(InputError(f"no video has the id {wanted}: choose one of those that are here"))
    at = names.index(wanted) if wanted in titles else 0
    name = st.selectbox(
        "Video", names, index=at, format_func=lambda one: titles[one], key=f"video_{wanted}"
    )
    if name != wanted:
        address.say(video=name, person=None, segment=None, clip=None, t=None)
    return videos_named(store, [name]).get(name)
