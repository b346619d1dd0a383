"""The library page: videos, how far each is, adding, pausing, trying again, deleting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from domain.errors import HomerError
from flows.jobs import Job, Jobs
from flows.uploads import drop_upload, keep_upload
from flows.watching import is_watched
from memory.library import delete
from memory.shelf import Shelved, being_watched, holdings, pace, page_of_videos, seconds_left
from models.profile import profile_names
from store.database import Store
from ui import address
from ui.desk import PageDesk, page_desk
from ui.faults import complain, guarded
from ui.images import image_of
from ui.pages import link
from ui.paging import SIZE, offset_of, wanted_offset
from ui.times import hms, lasting, room
from ui.words import plain

LOOK_S = 2.0
"""Seconds between looks at what is being watched."""
WATCHING = "watching"
DELETED = "told of a deletion"


def library_page() -> None:
    """The list of videos, what is being watched, and adding more."""
    st.title("Library")
    guarded(_body)


def _body() -> None:
    desk = page_desk()
    told = st.session_state.pop(DELETED, "")
    if told:
        st.success(plain(told))
    jobs = Jobs(desk.store.home)
    _add(desk, jobs)
    if jobs.every():
        st.header("Being watched", anchor=False)
        _follow()
    st.header("Videos", anchor=False)
    _list(desk, jobs)


def _add(desk: PageDesk, jobs: Jobs) -> None:
    with st.expander("Add a video", expanded=False):
        with st.form("add", border=False):
            path = st.text_input(
                "File or folder on this machine", placeholder="/home/me/Videos/talk.mp4"
            )
            files = st.file_uploader("Or files from this browser", accept_multiple_files=True)
            names = profile_names(desk.store.home.config)
            at = names.index(desk.profile) if desk.profile in names else 0
            profile = st.selectbox("Models", names, index=at)
            direct = st.checkbox("Without Prefect's server", help="Plain calls: starts sooner.")
            sent = st.form_submit_button("Watch", type="primary")
        if not sent:
            return
        try:
            sources = [keep_upload(desk.store.home, f.name, f.getvalue()) for f in files or ()]
            sources += [Path(path.strip())] if path.strip() else []
            if not sources:
                st.warning("Name a file or folder, or choose files.")
                return
            jobs.start(sources, profile, direct=direct)
        except HomerError as error:
            complain(error)
            return
    st.rerun()


@st.fragment(run_every=LOOK_S)
def _follow() -> None:
    """What is being watched, as it goes on; it goes on whether or not anybody looks."""
    guarded(_jobs)


def _jobs() -> None:
    desk = page_desk()
    jobs = Jobs(desk.store.home)
    every = jobs.every()
    for job in every:
        _job(desk, jobs, job)
    running = sorted(job.id for job in every if job.running)
    before = st.session_state.get("running jobs")
    st.session_state["running jobs"] = running
    if before is not None and before != running:
        st.rerun()


def _job(desk: PageDesk, jobs: Jobs, job: Job) -> None:
    names = ", ".join(Path(source).name for source in job.sources[:5])
    with st.container(border=True, key=f"job_{job.id}"):
        state = "being watched" if job.running else "ended"
        st.markdown(f"**{plain(names)}** {state}")
        for error in job.errors[-3:]:
            st.error(plain(error))
        if job.running:
            st.caption(plain(job.said[-1]) if job.said else "starting ...")
            st.button("Pause", key=f"pause_{job.id}", on_click=jobs.pause, args=(job.id,))
        else:
            st.button("Clear", key=f"clear_{job.id}", on_click=jobs.dismiss, args=(job.id,))
        _moving(desk.store, job)


def _moving(store: Store, job: Job) -> None:
    """How far the videos of a job are that are in the library already."""
    for one in being_watched(store, SIZE) if job.running else ():
        if job.watches(one.path):
            _progress(store, one)


def _progress(store: Store, one: Shelved) -> None:
    left = one.clips - one.done - one.failed
    soon = seconds_left(pace(store, one.id), left, datetime.now(UTC))
    eta = f", about {lasting(soon)} left" if soon is not None else ""
    part = (one.done + one.failed) / max(1, one.clips)
    st.progress(part, plain(f"{one.title}: {one.done} of {one.clips} clips{eta}"))


def _list(desk: PageDesk, jobs: Jobs) -> None:
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


def _entry(desk: PageDesk, jobs: Jobs, one: Shelved, every: Sequence[Job]) -> None:
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
                st.warning(plain(f"{one.error}: press Try again, or see the clips of the video"))
            _buttons(desk, jobs, one, every)


def _told(desk: PageDesk, one: Shelved) -> str:
    state = one.state
    if state == WATCHING and not is_watched(desk.store.home, one.id):
        state = "paused"
    failed = f", {one.failed} failed" if one.failed else ""
    clips = f"{one.done} of {one.clips} clips{failed}"
    return f"{hms(one.duration_ms)} long, {state}, {clips}, profile {one.profile}, {one.id}"


def _buttons(desk: PageDesk, jobs: Jobs, one: Shelved, every: Sequence[Job]) -> None:
    busy = is_watched(desk.store.home, one.id)
    mine = next((job for job in every if job.running and job.watches(one.path)), None)
    with st.container(horizontal=True, key=f"do_{one.id}"):
        if mine is not None and one.state == WATCHING:
            st.button("Pause", key=f"stop_{one.id}", on_click=jobs.pause, args=(mine.id,))
        elif one.path and not busy and one.state == WATCHING:
            _go_on(jobs, one, "Resume", again=False)
        elif one.path and not busy and one.failed:
            _go_on(jobs, one, "Try again", again=True)
        told = plain(f"Delete {one.title}")
        if st.button("Delete", key=f"delete_{one.id}", help=told, disabled=busy):
            address.say(delete=one.id)
    if address.told("delete") == one.id:
        _sure(desk, one)


def _go_on(jobs: Jobs, one: Shelved, label: str, *, again: bool) -> None:
    if not st.button(label, key=f"go_{one.id}", help=plain(f"{label}: {one.title}")):
        return
    try:
        jobs.start([Path(one.path or "")], one.profile, again=again)
    except HomerError as error:
        complain(error)
        return
    st.rerun()


def _sure(desk: PageDesk, one: Shelved) -> None:
    """What will go, and one more press."""
    video, held = holdings(desk.store, one.id)
    uploaded = bool(video.path) and desk.store.home.uploads in Path(video.path or "").parents
    file = "The uploaded file goes too." if uploaded else "The file itself stays."
    st.warning(
        plain(
            f"This goes: {held.clips} clips, {held.memories} memories, {held.people} people, "
            f"{held.events} events, {held.images} images ({room(held.bytes)}) and "
            f"{held.answers} answers that looked at it. {file}"
        )
    )
    with st.container(horizontal=True, key=f"sure_{one.id}"):
        if st.button("Yes, delete it", key=f"yes_{one.id}", type="primary"):
            files = delete(desk.store, one.id)
            drop_upload(desk.store.home, video.path)
            address.say(delete=None)
            st.session_state[DELETED] = f"{one.title} is deleted, with {files} images."
            st.rerun()
        if st.button("Keep it", key=f"keep_{one.id}"):
            address.say(delete=None)
            st.rerun()
