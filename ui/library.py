"""The library page: list, add, pause, retry and delete videos."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from domain.errors import HomerError, InputError
from flows.delete import delete_video, preview_video_deletion
from flows.jobs import Job, Jobs
from flows.video_locks import is_watched
from perception.originals import original_file
from store.home import Home
from ui.app_state import PageState, page_state
from ui.errors import show_error, show_errors
from ui.formatting import escape_markdown, format_bytes, format_time
from ui.ingestion import MESSAGE, add_videos, retry_button, show_failed_clips, show_ingestion
from ui.media import stored_image
from ui.navigation import PAGE_SIZE, page_link, paginate, requested_offset, set_params, text_param
from views.library_view import ListedVideo, page_of_videos

WATCHING = "watching"


def library_page() -> None:
    """Draw the form to add videos, the jobs, and the list of videos."""
    st.title("Library")
    show_errors(_body)


def _body() -> None:
    state = page_state()
    message = st.session_state.pop(MESSAGE, "")
    if message:
        st.success(escape_markdown(message))
    jobs = Jobs(state.store.home)
    add_videos(state, jobs)
    show_ingestion()
    st.header("Videos", anchor=False)
    _show_videos(state, jobs)


def _show_videos(state: PageState, jobs: Jobs) -> None:
    query = st.text_input("Search the titles", key="q", bind="query-params") or ""
    requested = requested_offset()
    videos, total = page_of_videos(state.store, requested, PAGE_SIZE, query)
    if not total:
        st.info(
            "No title matches."
            if query
            else "Nothing has been watched yet. Add a video above, or in a terminal: "
            "`homer ingest FILE`"
        )
        return
    offset = paginate(total)
    if offset != requested:
        videos, _ = page_of_videos(state.store, offset, PAGE_SIZE, query)
    all_jobs = jobs.every()
    for video in videos:
        _show_video(state, jobs, video, all_jobs)


def _show_video(state: PageState, jobs: Jobs, video: ListedVideo, all_jobs: Sequence[Job]) -> None:
    with st.container(border=True, key=f"video_{video.id}"):
        image, text = st.columns([1, 5])
        with image:
            data = stored_image(state.store, video.thumb)
            if data:
                st.image(data, alt=f"First frame of {video.title}", width=150)
            else:
                st.caption("no image")
        with text:
            page_link("video", escape_markdown(video.title), video=video.id)
            st.caption(escape_markdown(_summary(state, video)))
            if video.error:
                st.warning(escape_markdown(f"{video.error}: see why below, and try again"))
            if video.failed and video.path:
                show_failed_clips(state.store, video.id, video.failed)
            _show_buttons(state, jobs, video, all_jobs)


def _summary(state: PageState, video: ListedVideo) -> str:
    failed = f", {video.failed} failed" if video.failed else ""
    status = f"{video.state}, {video.done} of {video.clips} clips{failed}"
    if video.state == WATCHING:
        # The jobs above show the progress, and are refreshed.
        busy = is_watched(state.store, video.id)
        status = "being watched" if busy else status.replace(WATCHING, "paused", 1)
    return f"{format_time(video.duration_ms)} long, {status}, profile {video.profile}, {video.id}"


def _show_buttons(
    state: PageState, jobs: Jobs, video: ListedVideo, all_jobs: Sequence[Job]
) -> None:
    busy = is_watched(state.store, video.id)
    job = next(
        (
            candidate
            for candidate in all_jobs
            if candidate.running and candidate.watches(video.path)
        ),
        None,
    )
    with st.container(horizontal=True, key=f"do_{video.id}"):
        if job is not None and video.state == WATCHING:
            key, elsewhere = f"stop_{video.id}", not job.here
            st.button("Pause", key=key, on_click=jobs.pause, args=(job.id,), disabled=elsewhere)
        elif video.path and not busy and video.state == WATCHING:
            _resume_button(jobs, video)
        elif video.path and video.failed:
            retry_button(state.store, video.id)
        tooltip = escape_markdown(f"Delete {video.title}")
        if st.button("Delete", key=f"delete_{video.id}", help=tooltip, disabled=busy):
            set_params(delete=video.id)
    if text_param("delete") == video.id:
        _confirm_deletion(state, video)


def _resume_button(jobs: Jobs, video: ListedVideo) -> None:
    if not st.button(
        "Resume", key=f"go_{video.id}", help=escape_markdown(f"Resume: {video.title}")
    ):
        return
    try:
        jobs.start([_original(video)], video.profile)
    except HomerError as error:
        show_error(error)
        return
    st.rerun()


def _original(video: ListedVideo) -> Path:
    """Return the file of an unfinished video.

    Raises:
        InputError: it is missing or has changed.
    """
    path = original_file(Home.default(), video.id, video.path)
    if path is None:
        raise InputError(
            f"the file at {video.path} is missing or has changed: put it back, or add it "
            "again from its new place"
        )
    return path


def _confirm_deletion(state: PageState, video: ListedVideo) -> None:
    """Show what would be deleted, and delete it once confirmed."""
    preview = preview_video_deletion(state.store, video.id)
    held = preview.held
    st.warning(
        escape_markdown(
            f"This deletes {held.clips} clips, {held.memories} memories, {held.people} people, "
            f"{held.events} events, {held.images} images ({format_bytes(held.bytes)}) and "
            f"{held.answers} answers that used it. {preview.file}"
        )
    )
    with st.container(horizontal=True, key=f"sure_{video.id}"):
        if st.button("Yes, delete it", key=f"yes_{video.id}", type="primary"):
            deleted = delete_video(state.store, video.id)
            set_params(delete=None)
            upload = ", and so is its upload" if deleted.uploads else ""
            st.session_state[MESSAGE] = (
                f"{video.title} is deleted, with {deleted.images} images{upload}."
            )
            st.rerun()
        if st.button("Keep it", key=f"keep_{video.id}"):
            set_params(delete=None)
            st.rerun()
