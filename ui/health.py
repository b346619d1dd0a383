"""The health page: checks, services, disk space, recent errors, versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from flows.jobs import Jobs
from models.profile import load_profile, profile_names
from retrieval.search_cost import searches_so_far
from services.health import (
    Check,
    DiskSpace,
    RecentFailure,
    check_setup,
    disk_space,
    recent_failures,
    service_addresses,
    versions,
)
from store.home import Home
from ui.app_state import PageState, page_state
from ui.errors import show_errors
from ui.formatting import escape_markdown, format_bytes, format_date
from ui.navigation import page_link
from views.words import counted


def health_page() -> None:
    """Draw what is missing on this machine, what runs, and what failed lately."""
    st.title("Health")
    show_errors(_body)


def _body() -> None:
    state = page_state()
    profiles = profile_names(state.store.home.config)
    index = profiles.index(state.profile) if state.profile in profiles else 0
    profile = st.selectbox("Models", profiles, index=index, key="profile", bind="query-params")
    with st.spinner("Checking ..."):
        checks = cached_checks(str(state.store.home.root), profile or state.profile)
    _show_checks(checks)
    _show_services(state)
    _show_disk_space(disk_space(state.store))
    _show_failures(recent_failures(state.store))
    st.header("Versions", anchor=False)
    rows = [{"package": name, "version": found} for name, found in versions().items()]
    st.table(rows, hide_index=True)


@st.cache_data(ttl=60, show_spinner=False)
def cached_checks(root: str, profile: str) -> list[Check]:
    """Return the checks of ``homer doctor``, cached for a minute."""
    home = Home(Path(root))
    return list(check_setup(home, load_profile(profile, home.config)))


def _show_checks(checks: Sequence[Check]) -> None:
    missing = [check for check in checks if not check.ok]
    warnings = [check for check in checks if check.warning]
    if missing:
        be = "is" if len(missing) == 1 else "are"
        st.error(f"{len(missing)} of {counted(len(checks), 'requirement')} {be} missing.")
    elif warnings:
        st.warning(f"Everything is in place, with {counted(len(warnings), 'remark')}.")
    else:
        st.success("Everything that these models need is in place.")
    for check in (*missing, *warnings):
        st.markdown(f"**{escape_markdown(check.what)}**: {escape_markdown(check.found)}")
        st.code(check.fix, language=None, wrap_lines=True)
    st.header("Requirements", anchor=False)
    rows = [
        {
            "what": escape_markdown(check.what),
            "state": "ok" if check.ok else "MISSING",
            "found": escape_markdown(check.found),
        }
        for check in checks
    ]
    st.table(rows, hide_index=True)


def _show_services(state: PageState) -> None:
    st.header("Background work", anchor=False)
    for name, address in service_addresses(state.store.home).items():
        st.write(escape_markdown(f"{name}: {address or 'not running; watching starts it'}"))
    running = [job for job in Jobs(state.store.home).every() if job.running]
    st.write(f"{counted(len(running), 'job')} running.")
    page_link("library", "Open the library")
    searches = searches_so_far(state.store)
    if searches.requests:
        st.caption(f"Single searches took {searches} of an embeddings endpoint so far.")


def _show_disk_space(space: DiskSpace) -> None:
    st.header("Disk space", anchor=False)
    for column, name, size in zip(
        st.columns(3),
        ("Database", "Images", f"Free of {format_bytes(space.total)}"),
        (space.database, space.images, space.free),
        strict=True,
    ):
        column.metric(name, format_bytes(size))


def _show_failures(failures: Sequence[RecentFailure]) -> None:
    st.header("Recent errors", anchor=False)
    if not failures:
        st.caption("None.")
    for number, failure in enumerate(failures):
        with st.container(border=True, key=f"trouble_{number}"):
            if failure.trajectory:
                page_link(
                    "trajectory", escape_markdown(failure.where), trajectory=failure.trajectory
                )
            elif failure.video is None:
                st.markdown(f"**{escape_markdown(failure.where)}**")
            else:
                page_link(
                    "video", escape_markdown(failure.where), video=failure.video, show="Clips"
                )
            st.write(escape_markdown(failure.told) or "No reason is known.")
            st.caption(format_date(failure.at))
