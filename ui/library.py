"""The library page: list, add, pause, retry and delete videos."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from domain.errors import InputError
from domain.words import (
    capitalized,
    counted,
    format_time,
    join_words,
    translate,
    translate_sentence,
)
from flows.jobs import Job, Jobs
from flows.removal import delete_video, preview_video_deletion
from flows.video_locks import is_watched
from library.videos import page_of_videos
from perception.source import original_file
from store.queries.library import LibraryEntry
from ui.app_state import PageState, page_state, show_errors
from ui.formatting import escape_markdown, format_bytes
from ui.ingestion import (
    MESSAGE,
    add_videos,
    retry_button,
    show_failed_clips,
    show_failed_uploads,
    show_ingestion,
)
from ui.language import use_language
from ui.media import stored_image
from ui.navigation import PAGE_SIZE, page_link, paginate, requested_offset, set_params, text_param
from ui.sharing import show_shared_links

WATCHING, DONE = "watching", "done"
GRID = """<style>
.st-key-posters { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
.st-key-posters [data-testid=stImage] img { aspect-ratio: 16 / 9; object-fit: cover; }
</style>"""
"""Cards beside each other, as many as fit."""


def library_page() -> None:
    """Draw the form to add videos, the jobs, and the list of videos."""
    st.title(translate("Library"))
    state = page_state()
    message = st.session_state.pop(MESSAGE, "")
    if message:
        st.toast(escape_markdown(message), icon=":material/check:", duration="long")
    jobs = Jobs(state.store.home)
    query = text_param("q")
    requested = requested_offset()
    videos, total = page_of_videos(state.store, requested, PAGE_SIZE, query)
    if state.store.may_change:
        add_videos(state, jobs, expanded=not total and not query)
        show_failed_uploads()
        show_ingestion()
    elif not total and not query:
        st.write(translate("There is no video that you may see."))
        return
    if not total and not query:
        st.write(translate("Nothing has been watched yet. Choose a video above, and press Watch."))
        return
    st.text_input(
        translate("Search the titles"), key="q", bind="query-params", icon=":material/search:"
    )
    if not total:
        st.write(translate("No title matches."))
    else:
        offset = paginate(total)
        if offset != requested:
            videos, _ = page_of_videos(state.store, offset, PAGE_SIZE, query)
        all_jobs = jobs.every()
        st.html(GRID)
        with st.container(key="posters"):
            for video in videos:
                _show_video(state, jobs, video, all_jobs)
        deleted = next((video for video in videos if video.id == text_param("delete")), None)
        if deleted is not None and state.store.may_change:
            # Show what would be deleted, and delete it once confirmed.
            keep = partial(set_params, delete=None)
            dialog = st.dialog(translate("Delete this video?"), on_dismiss=keep)
            dialog(_show_deletion)(state, deleted)
    if state.store.may_change:
        show_shared_links(state.store)


def _show_video(state: PageState, jobs: Jobs, video: LibraryEntry, all_jobs: Sequence[Job]) -> None:
    with st.container(border=True, key=f"video_{video.id}"):
        data = stored_image(state.store, video.thumb)
        if data:
            st.image(
                data,
                alt=translate("First frame of {title}").format(title=video.title),
                width="stretch",
            )
        else:
            st.caption(translate("No picture yet"))
        page_link("video", escape_markdown(video.title), video=video.id)
        with st.container(
            horizontal=True,
            horizontal_alignment="distribute",
            vertical_alignment="center",
            key=f"line_{video.id}",
        ):
            # The length of a video and how far it is.
            clips = translate("{done} of {clips}").format(
                done=video.done, clips=counted(video.clips, "clip")
            )
            if video.state == WATCHING:
                # The jobs above show the progress, and are refreshed.
                state_words = (
                    translate("Being watched")
                    if is_watched(state.store, video.id)
                    else translate("Paused, {clips}").format(clips=clips)
                )
            elif video.failed:
                state_words = translate("{clips}, {failed} failed").format(
                    clips=clips, failed=video.failed
                )
            else:
                state_words = (
                    translate("Ready")
                    if video.state == DONE
                    else capitalized(translate(video.state))
                )
            st.caption(escape_markdown(f"{format_time(video.duration_ms)} · {state_words}"))
            with st.popover(
                translate("More"),
                type="tertiary",
                help=escape_markdown(translate("Menu of {title}").format(title=video.title)),
                key=f"menu_{video.id}",
            ):
                _show_menu(state, jobs, video, all_jobs)
        if video.error:
            error = escape_markdown(translate_sentence(video.error))
            st.caption(translate("Failed: {error}").format(error=error))
        if video.failed and video.path:
            show_failed_clips(state.store, video.id, video.failed)
            retry_button(state.store, video.id)


def _show_menu(state: PageState, jobs: Jobs, video: LibraryEntry, all_jobs: Sequence[Job]) -> None:
    busy = is_watched(state.store, video.id)
    job = next((one for one in all_jobs if one.running and one.watches(video.path)), None)
    page_link("ask", translate("Ask about it"), video=video.id)
    page_link("people", translate("Its people"), video=video.id)
    if not state.store.may_change:
        return
    if job is not None and video.state == WATCHING:
        key, elsewhere = f"stop_{video.id}", not job.here
        st.button(
            translate("Pause"), key=key, on_click=jobs.pause, args=(job.id,), disabled=elsewhere
        )
    elif (
        video.path
        and not busy
        and video.state == WATCHING
        and st.button(
            translate("Resume"),
            key=f"go_{video.id}",
            help=escape_markdown(translate("Resume: {title}").format(title=video.title)),
        )
    ):
        with show_errors():
            # The file of an unfinished video.
            path = original_file(jobs.home, video.id, video.path)
            if path is None:
                raise InputError(
                    translate(
                        "the file at {path} is missing or has changed: put it back, or add it "
                        "again from its new place"
                    ).format(path=video.path)
                )
            jobs.start([path], video.profile)
            st.rerun()
    tooltip = escape_markdown(translate("Delete {title}").format(title=video.title))
    if st.button(translate("Delete"), key=f"delete_{video.id}", help=tooltip, disabled=busy):
        set_params(delete=video.id)


def _show_deletion(state: PageState, video: LibraryEntry) -> None:
    use_language()
    preview = preview_video_deletion(state.store, video.id)
    held = preview.held
    parts = [
        part
        for number, part in (
            (held.clips, counted(held.clips, "clip")),
            (held.memories, counted(held.memories, "memory")),
            (held.people, counted(held.people, "person")),
            (held.events, counted(held.events, "event")),
            (held.images, counted(held.images, "image")),
        )
        if number
    ]
    listed = join_words(parts) or translate("nothing but its name")
    answers = (
        translate(" and {answers} that used it").format(answers=counted(held.answers, "answer"))
        if held.answers
        else ""
    )
    st.markdown(f"**{escape_markdown(video.title)}**")
    st.write(
        escape_markdown(
            translate("This deletes {listed} ({size}){answers}. {file}").format(
                listed=listed, size=format_bytes(held.bytes), answers=answers, file=preview.file
            )
        )
    )
    with st.container(horizontal=True, key=f"sure_{video.id}"):
        if st.button(translate("Yes, delete it"), key=f"yes_{video.id}", type="primary"):
            deleted = delete_video(state.store, video.id)
            set_params(delete=None)
            upload = translate(", and so is its upload") if deleted.uploads else ""
            images = counted(deleted.images, "image")
            st.session_state[MESSAGE] = translate(
                "{title} is deleted, with {images}{upload}."
            ).format(title=video.title, images=images, upload=upload)
            st.rerun()
        if st.button(translate("Keep it"), key=f"keep_{video.id}"):
            set_params(delete=None)
            st.rerun()
