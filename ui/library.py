"""The library page: videos, how far each is, adding, pausing, trying again, deleting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from domain.errors import HomerError, InputError
from flows.delete import delete_video, preview_video_deletion
from flows.jobs import Job, Jobs
from flows.video_locks import is_watched
from store.home import Home
from ui import address
from ui.app_state import PageState, page_desk
from ui.failed import retry_button, show_failed
from ui.faults import complain, guarded
from ui.images import image_of
from ui.pages import link
from ui.paging import SIZE, offset_of, wanted_offset
from ui.times import hms, room
from ui.watching import TOLD, add_videos, follow
from ui.words import plain
from views.library_view import ListedVideo, page_of_videos
from views.originals import original_file

WATCHING = "watching"


def library_page() -> None:
    """The list of videos, what is being watched, and adding more."""
    st.title("Library")
    guarded(_body)


def _body() -> None:
    desk = page_desk()
    told = st.session_state.pop(TOLD, "")
    if told:
        st.success(plain(told))
    jobs = Jobs(desk.store.home)
    add_videos(desk, jobs)
    follow()
    st.header("Videos", anchor=False)
    _list(desk, jobs)


def _list(desk: PageState, jobs: Jobs) -> None:
    words = st.text_input("Search the titles", key="q", bind="query-params") or ""
    start = wanted_offset()
    found, total = page_of_videos(desk.store, start, SIZE, words)
    if not total:
        st.info(
            "No title has these words."
            if words
            else "Nothing has been watched yet. Add a video above, or in a terminal: "
            "`homer ingest FILE`"
        )
        return
    offset = offset_of(total)
    if offset != start:
        found, _ = page_of_videos(desk.store, offset, SIZE, words)
    every = jobs.every()
    for one in found:
        _entry(desk, jobs, one, every)


def _entry(desk: PageState, jobs: Jobs, one: ListedVideo, every: Sequence[Job]) -> None:
    with st.container(border=True, key=f"video_{one.id}"):
        image, words = st.columns([1, 5])
        with image:
            data = image_of(desk.store, one.thumb)
            if data:
                st.image(data, alt=f"First frame of {one.title}", width=150)
            else:
                st.caption("no image")
        with words:
            link("video", plain(one.title), video=one.id)
            st.caption(plain(_told(desk, one)))
            if one.error:
                st.warning(plain(f"{one.error}: see why below, and try again"))
            if one.failed and one.path:
                show_failed(desk.store, one.id, one.failed)
            _buttons(desk, jobs, one, every)


def _told(desk: PageState, one: ListedVideo) -> str:
    failed = f", {one.failed} failed" if one.failed else ""
    state = f"{one.state}, {one.done} of {one.clips} clips{failed}"
    if one.state == WATCHING:
        # How far it is by now is told above, where it is looked at again and again.
        busy = is_watched(desk.store, one.id)
        state = "being watched" if busy else state.replace(WATCHING, "paused", 1)
    return f"{hms(one.duration_ms)} long, {state}, profile {one.profile}, {one.id}"


def _buttons(desk: PageState, jobs: Jobs, one: ListedVideo, every: Sequence[Job]) -> None:
    busy = is_watched(desk.store, one.id)
    mine = next((job for job in every if job.running and job.watches(one.path)), None)
    with st.container(horizontal=True, key=f"do_{one.id}"):
        if mine is not None and one.state == WATCHING:
            key, far = f"stop_{one.id}", not mine.here
            st.button("Pause", key=key, on_click=jobs.pause, args=(mine.id,), disabled=far)
        elif one.path and not busy and one.state == WATCHING:
            _resume(jobs, one)
        elif one.path and one.failed:
            retry_button(desk.store, one.id)
        told = plain(f"Delete {one.title}")
        if st.button("Delete", key=f"delete_{one.id}", help=told, disabled=busy):
            address.say(delete=one.id)
    if address.told("delete") == one.id:
        _sure(desk, one)


def _resume(jobs: Jobs, one: ListedVideo) -> None:
    if not st.button("Resume", key=f"go_{one.id}", help=plain(f"Resume: {one.title}")):
        return
    try:
        jobs.start([_file_of(one)], one.profile)
    except HomerError as error:
        complain(error)
        return
    st.rerun()


def _file_of(one: ListedVideo) -> Path:
    """The file that was watched so far.

    Raises:
        InputError: it is gone, or another one by now.
    """
    found = original_file(Home.default(), one.id, one.path)
    if found is None:
        raise InputError(
            f"the file is not at {one.path} any more, or is another one: put it back, or add it "
            "again from where it is"
        )
    return found


def _sure(desk: PageState, one: ListedVideo) -> None:
    """What will go, and one more press."""
    found = preview_video_deletion(desk.store, one.id)
    held = found.held
    st.warning(
        plain(
            f"This goes: {held.clips} clips, {held.memories} memories, {held.people} people, "
            f"{held.events} events, {held.images} images ({room(held.bytes)}) and "
            f"{held.answers} answers that looked at it. {found.file}"
        )
    )
    with st.container(horizontal=True, key=f"sure_{one.id}"):
        if st.button("Yes, delete it", key=f"yes_{one.id}", type="primary"):
            done = delete_video(desk.store, one.id)
            address.say(delete=None)
            upload = ", and so is its upload" if done.uploads else ""
            st.session_state[TOLD] = f"{one.title} is deleted, with {done.images} images{upload}."
            st.rerun()
        if st.button("Keep it", key=f"keep_{one.id}"):
            address.say(delete=None)
            st.rerun()
