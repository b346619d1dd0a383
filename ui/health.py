"""The health page: checks, services, schedules, disk space, recent errors, versions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from domain.errors import HomerError
from flows.jobs import Jobs
from flows.schedules.api import open_schedules
from flows.schedules.worker import ScheduleWorker
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
from services.prefect import PrefectServer
from store.home import Home
from ui.app_state import PageState, page_state
from ui.errors import show_error, show_errors
from ui.formatting import escape_markdown, format_bytes, format_date
from ui.navigation import page_link

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleEntry


def health_page() -> None:
    """Draw what is missing on this machine, what runs, and what failed lately."""
    st.title("Health")
    show_errors(_body)


def _body() -> None:
    state = page_state()
    profiles = profile_names(state.store.home.config)
    index = profiles.index(state.profile) if state.profile in profiles else 0
    profile = st.selectbox("Profile", profiles, index=index, key="profile", bind="query-params")
    with st.spinner("Checking ..."):
        checks = cached_checks(str(state.store.home.root), profile or state.profile)
    _show_checks(checks)
    _show_services(state)
    show_schedules(state.store.home)
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
    if missing:
        st.error(f"{len(missing)} of {len(checks)} things are missing.")
    else:
        st.success("Everything that the profile needs is in place.")
    for check in (check for check in checks if check.warning):
        st.warning(escape_markdown(f"{check.what}: {check.found}: {check.fix}"))
    for check in missing:
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
    st.header("Flows", anchor=False)
    for name, address in service_addresses(state.store.home).items():
        st.write(escape_markdown(f"{name}: {address or 'not running; watching starts it'}"))
    running = [job for job in Jobs(state.store.home).every() if job.running]
    st.write(f"{len(running)} jobs are watching videos.")
    page_link("library", "See them in the library")


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


SCHEDULE_ERROR = "schedule error"


def show_schedules(home: Home) -> None:
    """Draw the schedules with buttons; a hint where Prefect's server does not run."""
    st.header("Schedules", anchor=False)
    api = prefect_api(home)
    if api is None:
        st.caption("Schedules run while `homer up` runs.")
        return
    try:
        with open_schedules(home, api, look=True) as schedules:
            entries = schedules.entries()
    except HomerError as error:
        show_error(error)
        return
    if message := st.session_state.pop(SCHEDULE_ERROR, None):
        st.error(escape_markdown(message))
    if ScheduleWorker(home).address() is None:
        st.warning("Nothing runs the schedules at the moment: start `homer up`.")
    for entry in entries:
        _show_schedule(home, api, entry)
    st.link_button("Open Prefect", f"{api.removesuffix('/api')}/deployments")


def prefect_api(home: Home) -> str | None:
    """Return the address of Prefect's API if it runs; a page starts no server."""
    own = PrefectServer(home).address()
    return os.environ.get("PREFECT_API_URL") or (f"{own}/api" if own else None)


def _show_schedule(home: Home, api: str, entry: ScheduleEntry) -> None:
    with st.container(border=True, key=f"schedule_{entry.name}"):
        next_run = f", next {format_date(entry.next)}" if entry.next else ""
        name, when = escape_markdown(entry.name), escape_markdown(entry.when)
        st.markdown(f"**{name}** {when}, {'on' if entry.on else 'paused'}")
        st.caption(escape_markdown(f"{entry.kind}{next_run}"))
        if entry.last:
            st.write(escape_markdown(f"{entry.last.state}: {entry.last.told}"))
        with st.container(horizontal=True, key=f"turn_{entry.name}"):
            turn = "Pause" if entry.on else "Resume"
            for label, action in ((turn, turn.lower()), ("Run now", "run")):
                st.button(
                    label,
                    key=f"{action}_schedule_{entry.name}",
                    help=escape_markdown(f"{label}: {entry.name}"),
                    on_click=_change_schedule,
                    args=(home, api, action, entry.name),
                )


def _change_schedule(home: Home, api: str, action: str, name: str) -> None:
    try:
        with open_schedules(home, api, look=True) as schedules:
            {"pause": schedules.pause, "resume": schedules.resume, "run": schedules.run}[action](
                name
            )
    except HomerError as error:
        st.session_state[SCHEDULE_ERROR] = str(error)
