"""Delete a time span of a video, and show deleted spans on its timeline."""

from __future__ import annotations

import streamlit as st

from domain.errors import InputError
from domain.media import Video
from domain.time import TimeSpan, parse_clock
from domain.words import counted, format_span, translate
from flows.delete import delete_video_span, preview_span_deletion
from flows.workspace import Workspace
from memory.delete_span import list_deleted_spans
from store.database import Store
from ui.app_state import PageState
from ui.errors import show_errors
from ui.formatting import escape_markdown
from ui.timeline import Lane, TimelineBar

TONE = "third"
_REQUESTED, _RESULT = "span_requested", "span_deleted"


def deleted_lane(store: Store, video: Video) -> list[Lane]:
    """Return the deleted spans of a video as one lane; empty where nothing was deleted."""
    spans = list_deleted_spans(store, video.id)
    bars = [
        TimelineBar(
            f"gap{n}",
            span.start_ms,
            span.end_ms,
            translate("{time} was deleted").format(time=format_span(span)),
            "deleted",
            TONE,
        )
        for n, span in enumerate(spans)
    ]
    return [Lane(translate("Deleted"), bars)] if bars else []


def show_span_deletion(state: PageState, video: Video) -> None:
    """Ask for a span, show what would be deleted, and delete it once confirmed."""
    result = st.session_state.pop(_RESULT, "")
    if result:
        st.success(escape_markdown(result))
    with (
        st.expander(
            translate("Delete a part of this video"), expanded=_REQUESTED in st.session_state
        ),
        st.form("part", border=False),
    ):
        begin = st.text_input(translate("From"), placeholder="12:00")
        end = st.text_input(translate("To"), placeholder="14:30")
        if st.form_submit_button(translate("Delete this part")):
            st.session_state[_REQUESTED] = (video.id, begin or "", end or "")
    requested = st.session_state.get(_REQUESTED)
    if requested and requested[0] == video.id:
        show_errors(lambda: _confirm(state, video, _parse_span(requested[1], requested[2])))


def _parse_span(begin: str, end: str) -> TimeSpan:
    try:
        start, stop = parse_clock(begin), parse_clock(end)
    except ValueError as error:
        raise InputError(str(error)) from error
    if stop <= start:
        raise InputError(translate("the part must end after it begins"))
    return TimeSpan.of(start, stop)


def _confirm(state: PageState, video: Video, span: TimeSpan) -> None:
    preview = preview_span_deletion(state.store, video.id, span)
    cut = preview.cut
    clips = counted(len(cut.clips), "whole clip")
    st.warning(
        escape_markdown(
            translate(
                "This deletes {time}: {clips} with all that was remembered of them, and every "
                "answer that used any of it. It cannot be undone. {file}"
            ).format(time=format_span(cut.span), clips=clips, file=preview.file)
        )
    )
    with st.container(horizontal=True, key="sure_part"):
        if st.button(translate("Yes, delete this part"), type="primary"):
            toolbox = state.toolbox(video.profile)
            workspace = Workspace(state.store.home, state.store, toolbox.profile, toolbox)
            deleted = delete_video_span(workspace, video, span)
            del st.session_state[_REQUESTED]
            st.session_state[_RESULT] = translate(
                "{time} is deleted, with {images} and {answers}."
            ).format(
                time=format_span(cut.span),
                images=counted(deleted.images, "image"),
                answers=counted(deleted.answers, "answer"),
            )
            st.rerun()
        if st.button(translate("Keep this part")):
            del st.session_state[_REQUESTED]
            st.rerun()
