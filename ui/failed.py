"""Clips that could not be watched: why, and trying one or all of them again."""

from __future__ import annotations

import streamlit as st

from domain.errors import HomerError
from flows.jobs import Jobs
from flows.retry import clips_to_retry
from flows.video_locks import is_watched
from store.database import Store
from store.queries.clips import StoredClip
from ui.faults import complain
from ui.pages import link
from ui.times import from_to
from ui.words import plain
from views.library_view import failed_clips_of

SHOWN = 5
"""Failed clips that the library names."""


def show_failed(store: Store, video: str, count: int) -> None:
    """The failed clips of a video, each with its reason and a way to try it again."""
    with st.expander(f"Failed clips: {count}"):
        for clip in failed_clips_of(store, video, SHOWN):
            st.write(plain(f"clip {clip.index}, {from_to(clip.span)}: {_reason(clip)}"))
            retry_button(store, video, clip.index)
        if count > SHOWN:
            link(
                "video", f"The other {count - SHOWN} are among its clips", video=video, show="Clips"
            )


def _reason(clip: StoredClip) -> str:
    times = f" (failed {clip.attempts} times)" if clip.attempts > 1 else ""
    return f"{clip.error or 'no reason is known'}{times}"


def retry_button(store: Store, video: str, clip: int | None = None) -> None:
    """Has a failed clip tried again, or all of a video, in a process of its own."""
    label = "Try all again" if clip is None else f"Try clip {clip} again"
    key = f"retry_{video}_{'all' if clip is None else clip}"
    busy = is_watched(store, video)
    told = "It is being watched at this moment." if busy else None
    if not st.button(label, key=key, disabled=busy, help=told):
        return
    try:
        only = () if clip is None else (clip,)
        # The job reads the whole file and says if it is another one: a page must not wait so long.
        Jobs(store.home).retry(clips_to_retry(store, video, only, compare=False))
    except HomerError as error:
        complain(error)
        return
    st.rerun()
