"""Deleting a part of a video, on its page; and what was deleted, as a lane of its timeline."""

from __future__ import annotations

import streamlit as st

from domain.errors import InputError
from domain.media import Video
from domain.time import TimeSpan, parse_clock
from flows.delete import delete_video_span, preview_span_deletion
from flows.workspace import Workspace
from memory.delete_span import list_deleted_spans
from store.database import Store
from ui.app_state import PageState
from ui.faults import guarded
from ui.timeline import Lane, TimelineBar
from ui.times import from_to
from ui.words import plain

TONE = "third"
_WANTED, _DONE = "part_wanted", "part_deleted"


def deleted_lane(store: Store, video: Video) -> list[Lane]:
    """What was deleted of the video as one lane; none where nothing was."""
    spans = list_deleted_spans(store, video.id)
    bars = [
        TimelineBar(
            f"gap{n}", one.start_ms, one.end_ms, f"{from_to(one)} was deleted", "deleted", TONE
        )
        for n, one in enumerate(spans)
    ]
    return [Lane("Deleted", bars)] if bars else []


def delete_part(desk: PageState, video: Video) -> None:
    """Asks which part, says what goes, and deletes it after one more press."""
    told = st.session_state.pop(_DONE, "")
    if told:
        st.success(plain(told))
    with (
        st.expander("Delete a part of this video", expanded=_WANTED in st.session_state),
        st.form("part", border=False),
    ):
        begin = st.text_input("From", placeholder="12:00")
        end = st.text_input("To", placeholder="14:30")
        if st.form_submit_button("Delete this part"):
            st.session_state[_WANTED] = (video.id, begin or "", end or "")
    wanted = st.session_state.get(_WANTED)
    if wanted and wanted[0] == video.id:
        guarded(lambda: _sure(desk, video, _span(wanted[1], wanted[2])))


def _span(begin: str, end: str) -> TimeSpan:
    try:
        start, stop = parse_clock(begin), parse_clock(end)
    except ValueError as error:
        raise InputError(str(error)) from error
    if stop <= start:
        raise InputError("the part must end after it begins")
    return TimeSpan.of(start, stop)


def _sure(desk: PageState, video: Video, span: TimeSpan) -> None:
    found = preview_span_deletion(desk.store, video.id, span)
    cut = found.cut
    st.warning(
        plain(
            f"This goes: {from_to(cut.span)}, {len(cut.clips)} whole clips with all that was "
            "remembered of them, and every answer that was shown any of it. It cannot be undone. "
            f"{found.file}"
        )
    )
    with st.container(horizontal=True, key="sure_part"):
        if st.button("Yes, delete this part", type="primary"):
            toolbox = desk.toolbox(video.profile)
            whole = Workspace(desk.store.home, desk.store, toolbox.profile, toolbox)
            gone = delete_video_span(whole, video, span)
            del st.session_state[_WANTED]
            st.session_state[_DONE] = (
                f"{from_to(cut.span)} is deleted, with {gone.images} images and "
                f"{gone.answers} answers."
            )
            st.rerun()
        if st.button("Keep this part"):
            del st.session_state[_WANTED]
            st.rerun()
