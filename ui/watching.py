"""What is being watched: adding videos, how far each is, pausing, going on after a stop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from domain.errors import HomerError
from flows.delete import delete_unwatched_uploads
from flows.jobs import Job, Jobs
from flows.uploads import store_upload
from flows.video_locks import watched_videos
from models.profile import profile_names
from services.job_status import JobState
from store.database import Store
from ui.app_state import PageState, page_desk
from ui.faults import complain, guarded
from ui.paging import SIZE
from ui.signed_in import act_as_signed_in
from ui.times import lasting
from ui.words import plain
from views.library_view import ListedVideo, being_watched, seconds_left, watch_rate

LOOK_S = 2.0
"""Seconds between looks at what is being watched."""

TOLD = "told of the library"
"""What is said once, when the page is drawn the next time."""

BEFORE = "watched before"

STAGES = {
    JobState.WATCHING: "being watched",
    JobState.DONE: "watched",
    JobState.PAUSED: "paused",
    JobState.FAILED: "ended with errors",
    JobState.KILLED: "stopped before its end",
    JobState.UNKNOWN: "begun in another container or on another machine",
}


def add_videos(desk: PageState, jobs: Jobs) -> None:
    """The form for adding files and folders."""
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
        named = [Path(path.strip())] if path.strip() else []
        if not (files or named):
            st.warning("Name a file or folder, or choose files.")
            return
        kept: list[Path] = []
        try:
            for file in files or ():
                kept.append(store_upload(desk.store.home, file.name, file.getvalue()))  # noqa: PERF401 - those before one that fails are to go
            jobs.start([*kept, *named], profile, direct=direct)
        except HomerError as error:
            delete_unwatched_uploads(desk.store, jobs.unclaimed_sources(map(str, kept)))
            complain(error)
            return
    st.rerun()


def follow() -> None:
    """What is being watched, as it goes on; it goes on whether or not anybody looks."""
    # Only a later look draws the page again, else what is said on it once would be lost.
    st.session_state.pop(BEFORE, None)
    _look()


@st.fragment(run_every=LOOK_S)
def _look() -> None:
    guarded(_follow)


def _follow() -> None:
    desk = page_desk()
    jobs = Jobs(desk.store.home)
    watched = watched_videos(desk.store)
    every, moving = jobs.every(), being_watched(desk.store, SIZE, watched)
    held = {one.id for one in moving if one.id in watched}
    others = [one for one in moving if one.id in held and not _job_of(one, every)]
    if every or others:
        st.header("Being watched", anchor=False)
    for job in every:
        _job(desk, jobs, job, [one for one in moving if job.watches(one.path)])
    for one in others:
        with st.container(border=True, key=f"other_{one.id}"):
            st.markdown(f"**{plain(one.title)}** being watched by another homer process")
            _progress(desk.store, one)
    _draw_again([*(f"{job.id} {job.stage}" for job in every), *sorted(held)])


def _job_of(one: ListedVideo, every: Sequence[Job]) -> Job | None:
    """The job that watches a video at this moment."""
    return next((job for job in every if job.running and job.watches(one.path)), None)


def _draw_again(now: Sequence[str]) -> None:
    """Draws the whole page when something began or ended since the last look."""
    before = st.session_state.get(BEFORE)
    st.session_state[BEFORE] = list(now)
    if before is not None and before != list(now):
        st.rerun()


def _job(desk: PageState, jobs: Jobs, job: Job, moving: Sequence[ListedVideo]) -> None:
    names = ", ".join(Path(source).name for source in job.sources[:5])
    with st.container(border=True, key=f"job_{job.id}"):
        st.markdown(f"**{plain(names)}** {STAGES[job.stage]}")
        for error in job.errors[-3:]:
            st.error(plain(error))
        if job.stage is JobState.KILLED:
            st.warning(
                "Watching stopped: its process is gone. It was killed, or the machine was started "
                "anew. Nothing that was done is lost; it goes on from the clip it was at."
            )
        if job.stage is JobState.UNKNOWN:
            st.caption("Whether it still runs cannot be told from here. `homer ingest` can go on.")
        for one in moving if job.running else ():
            _progress(desk.store, one)
        if job.running and not moving:
            st.caption(plain(job.said[-1]) if job.said else "starting ...")
        _presses(jobs, job)


def _presses(jobs: Jobs, job: Job) -> None:
    names = plain(", ".join(Path(source).name for source in job.sources[:5]))
    with st.container(horizontal=True, key=f"press_{job.id}"):
        if job.running:
            told, act = f"Pause: {names}", jobs.pause
            key, far = f"pause_{job.id}", not job.here
            st.button("Pause", key=key, help=told, on_click=act, args=(job.id,), disabled=far)
            return
        if job.unfinished:
            told = f"Go on with {names}"
            st.button("Go on", key=f"on_{job.id}", help=told, on_click=_go_on, args=(jobs, job))
        told = f"Take this off the page: {names}"
        st.button("Clear", key=f"clear_{job.id}", help=told, on_click=_clear, args=(jobs, job))


def _go_on(jobs: Jobs, job: Job) -> None:
    act_as_signed_in()
    jobs.go_on(job.id)


def _clear(jobs: Jobs, job: Job) -> None:
    """Takes a job off the page; an upload that became no video, and never will, goes with it."""
    jobs.dismiss(job.id)
    gone = delete_unwatched_uploads(page_desk().store, jobs.unclaimed_sources(job.sources))
    if gone:
        names = ", ".join(path.name for path in gone)
        st.session_state[TOLD] = f"The uploaded file is removed, since it became no video: {names}."


def _progress(store: Store, one: ListedVideo) -> None:
    left = one.clips - one.done - one.failed
    soon = seconds_left(watch_rate(store, one.id), left, datetime.now(UTC))
    eta = f", about {lasting(soon)} left" if soon is not None else ""
    part = (one.done + one.failed) / max(1, one.clips)
    st.progress(part, plain(f"{one.title}: {one.done} of {one.clips} clips{eta}"))
