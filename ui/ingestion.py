"""Add videos, follow their ingestion, and retry clips that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import streamlit as st

from domain.errors import HomerError, InputError
from domain.watching import sum_of
from domain.words import capitalized, counted, format_span, marked, translate, translate_sentence
from flows.addresses import delete_parts, is_address
from flows.estimate import estimate_file
from flows.jobs import Job, Jobs, clips_to_retry
from flows.removal import delete_unwatched_uploads
from flows.uploads import first_file, paths_within, store_upload
from flows.video_locks import is_watched, watched_videos
from flows.workspace import open_workspace
from library.memory import load_stream_details
from library.videos import being_watched, failed_clips_of, seconds_left, watch_rate
from models.profile import profile_names
from perception.source import find_media
from services.daemon import JobState
from store.database import Store
from store.queries.library import LibraryEntry
from ui.app_state import PageState, page_state, show_error, show_errors
from ui.formatting import escape_markdown, format_duration
from ui.language import use_language
from ui.navigation import PAGE_SIZE, page_link
from ui.sign_in import SIGN_IN, set_acting_user

# What users of the app may name to be watched: paths of the server, and addresses.


@dataclass
class AllowedFolders:
    """The folders of ``homer up --videos``; without any, all of the machine's on one's own."""

    folders: tuple[Path, ...] = ()

    @property
    def any_path(self) -> bool:
        """Whether users may name any path: those who need no sign-in are at this machine."""
        return not self.folders and not SIGN_IN.required


ALLOWED = AllowedFolders()

MAX_UPLOAD_MB = 2048
"""Of one uploaded file, which is in memory until it is stored."""
VIEWER_UPLOADS_MB, UPLOADS_MB = 32, 4 * MAX_UPLOAD_MB
"""Of all uploads that a user has in memory: one who only looks gives images to search by."""


@dataclass(frozen=True)
class AddedSources:
    """The paths and addresses that a user named."""

    paths: tuple[Path, ...] = ()
    urls: tuple[str, ...] = ()


def parse_source(text: str) -> AddedSources:
    """Return what a user named in the field.

    Raises:
        InputError: it is a path that may not be named, or that is no file.
    """
    text = text.strip()
    if not text:
        return AddedSources()
    if is_address(text):
        return AddedSources(urls=(text,))
    if ALLOWED.any_path:
        return AddedSources(paths=(Path(text),))
    found = first_file(paths_within(ALLOWED.folders, text))
    if found is None:
        raise InputError(
            translate("there is no such file in the folders that videos may be added from")
            if ALLOWED.folders
            else translate(
                "paths of the server may not be named here: its operator allows folders with "
                "`homer up --videos FOLDER`"
            )
        )
    return AddedSources(paths=(found,))


POLL_S = 2.0
"""Seconds between polls of the jobs."""

MESSAGE = "library message"
"""Session key of a message that is shown once, when the page is drawn again."""

LAST_SEEN = "jobs last seen"

FAILED_UPLOADS, UPLOADS_SENT = "failed uploads", "uploads sent"
"""Session keys: the names of uploads that failed with the reasons; how often files were sent."""

STATE_TEXTS = {
    JobState.WATCHING: marked("being watched"),
    JobState.DONE: marked("watched"),
    JobState.PAUSED: marked("paused"),
    JobState.FAILED: marked("ended with errors"),
    JobState.KILLED: marked("stopped early"),
    JobState.UNKNOWN: marked("started in another container or on another machine"),
}


def add_videos(state: PageState, jobs: Jobs, *, expanded: bool = False) -> None:
    with st.expander(translate("Add a video"), expanded=expanded, icon=":material/add:"):
        with st.form("add", border=False):
            label = translate("Web address of a video")
            example = "https://example.org/talk.mp4"
            if ALLOWED.any_path:
                label = translate("File or folder on this machine, or a web address")
                example = "/home/me/Videos/talk.mp4"
            elif ALLOWED.folders:
                label = translate("File in a shared folder, or a web address")
                example = "talks/talk.mp4"
            source = st.text_input(
                label,
                placeholder=example,
                help=translate("Fetch only what you have the right to copy."),
            )
            # Under a new key it is empty: files that were stored leave the memory.
            files = st.file_uploader(
                translate("Or files from this browser"),
                accept_multiple_files=True,
                max_upload_size=MAX_UPLOAD_MB,
                key=f"files_{st.session_state.get(UPLOADS_SENT, 0)}",
            )
            hint = (
                translate(
                    "Up to {size} GB each. For longer recordings, give the path or the web address "
                    "above."
                )
                if ALLOWED.any_path or ALLOWED.folders
                else translate(
                    "Up to {size} GB each. For longer recordings, give the web address above."
                )
            )
            st.caption(hint.format(size=MAX_UPLOAD_MB // 1024))
            names = profile_names(state.store.home.config)
            index = names.index(state.profile) if state.profile in names else 0
            profile = st.selectbox(translate("Models"), names, index=index)
            direct = st.checkbox(
                translate("Without Prefect's server"),
                help=translate("Direct calls: starts sooner."),
            )
            with st.container(horizontal=True):
                sent = st.form_submit_button(translate("Watch"), type="primary")
                estimate = st.form_submit_button(
                    translate("Estimate"),
                    help=translate("Says what it will cost and how long it will take."),
                )
        if estimate:
            with show_errors():
                _show_estimates(source, profile)
        if not sent:
            return
        if not (files or source.strip()):
            st.warning(translate("Name a file or folder, or an address, or choose files."))
            return
        try:
            _watch(state.store, jobs, source, files or (), profile, direct=direct)
        except HomerError as error:
            show_error(error)
            return
    st.session_state[UPLOADS_SENT] = st.session_state.get(UPLOADS_SENT, 0) + 1
    st.rerun()


def _watch(
    store: Store,
    jobs: Jobs,
    source: str,
    files: Sequence[UploadedFile],
    profile: str,
    *,
    direct: bool,
) -> None:
    """Start a job that watches what was named, and the uploads that could be stored.

    Raises:
        HomerError: nothing is watched.
    """
    named = parse_source(source)
    # Store uploads; those that cannot be stored are listed as failed with the reason.
    uploads: list[Path] = []
    for file in files:
        try:
            with file.getbuffer() as data:
                uploads.append(store_upload(store.home, file.name, data))
        except InputError as error:
            st.session_state.setdefault(FAILED_UPLOADS, []).append((file.name, str(error)))
    if not (uploads or named.paths or named.urls):
        return
    try:
        jobs.start(
            [*uploads, *named.paths],
            profile,
            direct=direct,
            urls=named.urls,
            # Who signs in from elsewhere reaches nothing of this machine's own network by it.
            public_only=SIGN_IN.required,
        )
    except HomerError:
        delete_unwatched_uploads(store, jobs.unclaimed_sources(map(str, uploads)))
        raise


class UploadedFile(Protocol):
    """A file that a browser uploaded, in memory."""

    name: str

    def getbuffer(self) -> memoryview:
        """Return its content."""


def show_failed_uploads() -> None:
    """List the uploads that could not be stored, until they are cleared."""
    failed = st.session_state.get(FAILED_UPLOADS, [])
    for number, (name, reason) in enumerate(failed):
        with st.container(border=True, key=f"upload_{number}"):
            st.markdown(translate("**{name}** was not uploaded").format(name=escape_markdown(name)))
            why = escape_markdown(translate_sentence(reason))
            st.markdown(translate("Failed: {reason}").format(reason=why))
            st.button(
                translate("Clear"),
                key=f"clear_upload_{number}",
                help=escape_markdown(translate("Remove from this page: {name}").format(name=name)),
                on_click=failed.pop,
                args=(number,),
            )


def _show_estimates(source: str, profile: str) -> None:
    """Say what watching files on this machine will cost and how long it will take."""
    paths = parse_source(source).paths
    if not paths:
        st.warning(translate("Name a file or folder on this machine."))
        return
    with (
        st.spinner(translate("Watching a few clips of each file ...")),
        open_workspace(profile) as workspace,
    ):
        estimates = [estimate_file(workspace, file) for file in find_media(paths)]
    together = [sum_of(estimates)] if len(estimates) > 1 else []
    for one in [*estimates, *together]:
        st.write(escape_markdown(str(one)))


def show_ingestion() -> None:
    """Draw the jobs, which do not depend on an open page, and poll them."""
    # The first poll must not rerun the page, or a message shown once would be lost.
    st.session_state.pop(LAST_SEEN, None)
    _poll()


@st.fragment(run_every=POLL_S)
def _poll() -> None:
    with show_errors():
        state = page_state()
        jobs = Jobs(state.store.home)
        watched = watched_videos(state.store)
        all_jobs, videos = jobs.every(), being_watched(state.store, PAGE_SIZE, watched)
        ingested = {video.id for video in videos if video.id in watched}
        others = [
            video
            for video in videos
            if video.id in ingested
            and not next((job for job in all_jobs if job.running and job.watches(video.path)), None)
        ]
        # Commands watch videos too: those have no job here.
        if all_jobs or others:
            st.header(translate("In progress"), anchor=False)
        for job in all_jobs:
            _show_job(state, jobs, job, [video for video in videos if job.watches(video.path)])
        for video in others:
            with st.container(border=True, key=f"other_{video.id}"):
                st.markdown(
                    translate("**{title}** being watched by another homer process").format(
                        title=escape_markdown(video.title)
                    )
                )
                _show_progress(state.store, video)
                if load_stream_details(state.store, video.id) is not None:
                    page_link("video", translate("See it live"), video=video.id, show="Live")
        # Draw the whole page again when a job began or ended since the last poll.
        current = [*(f"{job.id} {job.stage}" for job in all_jobs), *sorted(ingested)]
        before = st.session_state.get(LAST_SEEN)
        st.session_state[LAST_SEEN] = list(current)
        if before is not None and before != list(current):
            st.rerun()


def _show_job(state: PageState, jobs: Jobs, job: Job, videos: Sequence[LibraryEntry]) -> None:
    names = ", ".join(job.names[:5])
    with st.container(border=True, key=f"job_{job.id}"):
        st.markdown(f"**{escape_markdown(names)}** {translate(STATE_TEXTS[job.stage])}")
        for error in job.errors[-3:]:
            why = escape_markdown(translate_sentence(error))
            st.markdown(translate("Failed: {error}").format(error=why))
        if job.stage is JobState.KILLED:
            st.markdown(
                translate(
                    "Watching stopped: its process was killed, or the machine was restarted. "
                    "Finished clips are not lost; it resumes with the next one."
                )
            )
        if job.stage is JobState.UNKNOWN:
            st.caption(
                translate(
                    "Whether it still runs is unknown from here. `homer ingest` can resume it."
                )
            )
        for video in videos if job.running else ():
            _show_progress(state.store, video)
        if job.running and not videos:
            st.caption(escape_markdown(job.said[-1]) if job.said else translate("starting ..."))
        names = escape_markdown(", ".join(job.names[:5]))
        with st.container(horizontal=True, key=f"press_{job.id}"):
            if job.running:
                tooltip, action = translate("Pause: {names}").format(names=names), jobs.pause
                key, elsewhere = f"pause_{job.id}", not job.here
                st.button(
                    translate("Pause"),
                    key=key,
                    help=tooltip,
                    on_click=action,
                    args=(job.id,),
                    disabled=elsewhere,
                )
                return
            if job.unfinished:
                tooltip = translate("Continue {names}").format(names=names)
                st.button(
                    translate("Continue"),
                    key=f"on_{job.id}",
                    help=tooltip,
                    on_click=_resume,
                    args=(jobs, job),
                )
            tooltip = translate("Remove from this page: {names}").format(names=names)
            st.button(
                translate("Clear"),
                key=f"clear_{job.id}",
                help=tooltip,
                on_click=_clear,
                args=(jobs, job),
            )


def _resume(jobs: Jobs, job: Job) -> None:
    set_acting_user()
    jobs.go_on(job.id)


def _clear(jobs: Jobs, job: Job) -> None:
    """Remove a job from the page, with its uploads that became no video."""
    jobs.dismiss(job.id)
    delete_parts(page_state().store.home, jobs.unclaimed_sources(filter(is_address, job.sources)))
    deleted = delete_unwatched_uploads(page_state().store, jobs.unclaimed_sources(job.files))
    if deleted:
        names = ", ".join(path.name for path in deleted)
        use_language()
        st.session_state[MESSAGE] = translate(
            "The uploaded file was removed, since it became no video: {names}."
        ).format(names=names)


def _show_progress(store: Store, video: LibraryEntry) -> None:
    left = video.clips - video.done - video.failed
    remaining_s = seconds_left(watch_rate(store, video.id), left, datetime.now(UTC))
    eta = (
        translate(", about {duration} left").format(duration=format_duration(remaining_s))
        if remaining_s is not None
        else ""
    )
    fraction = (video.done + video.failed) / max(1, video.clips)
    st.progress(
        fraction,
        escape_markdown(
            translate("{title}: {done} of {clips}{eta}").format(
                title=video.title, done=video.done, clips=counted(video.clips, "clip"), eta=eta
            )
        ),
    )


MAX_FAILED_CLIPS = 5
"""Failed clips listed in the library."""


def show_failed_clips(store: Store, video: str, count: int) -> None:
    """List the failed clips of a video, each with its error and a button to retry it."""
    with st.expander(capitalized(counted(count, "failed clip"))):
        for clip in failed_clips_of(store, video, MAX_FAILED_CLIPS):
            times = (
                translate(" (failed {count} times)").format(count=clip.attempts)
                if clip.attempts > 1
                else ""
            )
            reason = translate_sentence(clip.error) if clip.error else translate("unknown error")
            st.write(
                escape_markdown(
                    translate("clip {index}, {time}: {reason}").format(
                        index=clip.index, time=format_span(clip.span), reason=f"{reason}{times}"
                    )
                )
            )
            retry_button(store, video, clip.index)
        if count > MAX_FAILED_CLIPS:
            page_link(
                "video",
                translate("The other {count} are among its clips").format(
                    count=count - MAX_FAILED_CLIPS
                ),
                video=video,
                show="Clips",
            )


def retry_button(store: Store, video: str, clip: int | None = None) -> None:
    """Draw the button that retries one failed clip, or all of a video, in a job."""
    if not store.may_change:
        return
    label = (
        translate("Try all again")
        if clip is None
        else translate("Try clip {clip} again").format(clip=clip)
    )
    key = f"retry_{video}_{'all' if clip is None else clip}"
    busy = is_watched(store, video)
    tooltip = translate("It is being watched at the moment.") if busy else None
    if not st.button(label, key=key, disabled=busy, help=tooltip):
        return
    with show_errors():
        only = () if clip is None else (clip,)
        # The job reads the whole file to notice a changed one: a page must not wait for that.
        Jobs(store.home).retry(clips_to_retry(store, video, only, compare=False))
        st.rerun()
