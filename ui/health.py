"""The health page: what works, what is missing and how to get it, room, errors, versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from flows.jobs import Jobs
from models.profile import load_profile, profile_names
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
from ui.app_state import PageState, page_desk
from ui.faults import guarded
from ui.pages import link
from ui.schedules import show_schedules
from ui.times import moment, room
from ui.words import plain


def health_page() -> None:
    """All that can be wrong with this machine, and what was."""
    st.title("Health")
    guarded(_body)


def _body() -> None:
    desk = page_desk()
    names = profile_names(desk.store.home.config)
    at = names.index(desk.profile) if desk.profile in names else 0
    profile = st.selectbox("Profile", names, index=at, key="profile", bind="query-params")
    with st.spinner("Looking ..."):
        made = checks_of(str(desk.store.home.root), profile or desk.profile)
    _checks(made)
    _flows(desk)
    show_schedules(desk.store.home)
    _space(disk_space(desk.store))
    _troubles(recent_failures(desk.store))
    st.header("Versions", anchor=False)
    rows = [{"package": name, "version": found} for name, found in versions().items()]
    st.table(rows, hide_index=True)


@st.cache_data(ttl=60, show_spinner=False)
def checks_of(root: str, profile: str) -> list[Check]:
    """What ``homer doctor`` finds; looked up once a minute."""
    home = Home(Path(root))
    return list(check_setup(home, load_profile(profile, home.config)))


def _checks(made: Sequence[Check]) -> None:
    bad = [one for one in made if not one.ok]
    if bad:
        st.error(f"{len(bad)} of {len(made)} things are missing.")
    else:
        st.success("Everything that the profile needs is in place.")
    for one in (one for one in made if one.warning):
        st.warning(plain(f"{one.what}: {one.found}: {one.fix}"))
    for one in bad:
        st.markdown(f"**{plain(one.what)}**: {plain(one.found)}")
        st.code(one.fix, language=None, wrap_lines=True)
    st.header("What is needed", anchor=False)
    rows = [
        {"what": plain(one.what), "state": "ok" if one.ok else "MISSING", "found": plain(one.found)}
        for one in made
    ]
    st.table(rows, hide_index=True)


def _flows(desk: PageState) -> None:
    st.header("Flows", anchor=False)
    for name, where in service_addresses(desk.store.home).items():
        st.write(plain(f"{name}: {where or 'does not run; watching starts it'}"))
    running = [job for job in Jobs(desk.store.home).every() if job.running]
    st.write(f"{len(running)} jobs are watching videos.")
    link("library", "See them in the library")


def _space(found: DiskSpace) -> None:
    st.header("Room", anchor=False)
    for column, name, size in zip(
        st.columns(3),
        ("Database", "Images", f"Free of {room(found.total)}"),
        (found.database, found.images, found.free),
        strict=True,
    ):
        column.metric(name, room(size))


def _troubles(found: Sequence[RecentFailure]) -> None:
    st.header("Recent errors", anchor=False)
    if not found:
        st.caption("None.")
    for number, one in enumerate(found):
        with st.container(border=True, key=f"trouble_{number}"):
            if one.trajectory:
                link("trajectory", plain(one.where), trajectory=one.trajectory)
            elif one.video is None:
                st.markdown(f"**{plain(one.where)}**")
            else:
                link("video", plain(one.where), video=one.video, show="Clips")
            st.write(plain(one.told) or "No reason is known.")
            st.caption(moment(one.at))
