"""The health page: checks, services, disk space, recent errors, versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from domain.people import tags_in_words
from domain.words import counted, translate, translate_count, translate_sentence
from flows.jobs import Jobs
from models.profile import load_profile, profile_names
from models.text_endpoint import searches_so_far
from services.health import (
    Check,
    RecentFailure,
    check_setup,
    disk_space,
    recent_failures,
    versions,
)
from services.supervisor import PrefectServer
from store.home import Home
from ui.app_state import page_state
from ui.formatting import escape_markdown, format_bytes, format_date, show_table
from ui.language import use_language
from ui.navigation import page_link

POLL_S = 1.0
"""Seconds between polls of the checks while they are made."""
WAIT_S = 0.3
"""Seconds that the page waits for the checks before it shows their progress instead."""


@dataclass(frozen=True)
class RunningChecks:
    """Checks that are made in a thread: ``found`` are those that are finished."""

    found: list[Check]
    outcome: Future[None]


def health_page() -> None:
    """Draw what is missing on this machine, what runs, and what failed lately."""
    st.title(translate("Health"))
    state = page_state()
    profiles = profile_names(state.store.home.config)
    index = profiles.index(state.profile) if state.profile in profiles else 0
    profile = st.selectbox(
        translate("Models"), profiles, index=index, key="profile", bind="query-params"
    )
    checks = checks_of(str(state.store.home.root), profile or state.profile)
    if wait([checks.outcome], WAIT_S).done:
        checks.outcome.result()
        _show_checks(checks.found)
    else:
        _poll_checks(checks)
    st.header(translate("Background work"), anchor=False)
    address = PrefectServer(state.store.home).address()
    address = address or translate("not running; watching starts it")
    name = translate("Prefect's server")
    st.write(escape_markdown(f"{name}: {address}"))
    running = [job for job in Jobs(state.store.home).every() if job.running]
    st.write(translate("{jobs} running.").format(jobs=counted(len(running), "job")))
    page_link("library", translate("Open the library"))
    searches = searches_so_far(state.store)
    if searches.requests:
        st.caption(
            translate("Single searches took {searches} of an embeddings endpoint so far.").format(
                searches=searches
            )
        )
    space = disk_space(state.store)
    st.header(translate("Disk space"), anchor=False)
    for column, name, size in zip(
        st.columns(3),
        (
            translate("Database"),
            translate("Images"),
            translate("Free of {size}").format(size=format_bytes(space.total)),
        ),
        (space.database, space.images, space.free),
        strict=True,
    ):
        column.metric(name, format_bytes(size))
    _show_failures(recent_failures(state.store))
    st.header(translate("Versions"), anchor=False)
    show_table(
        translate("Versions"), (translate("package"), translate("version")), versions().items()
    )


@st.cache_resource(ttl=60, show_spinner=False)
def checks_of(root: str, profile: str) -> RunningChecks:
    """Start the checks of ``homer doctor``, which read whole models; they stand for a minute.

    Raises:
        HomerError: the profile cannot be read.
    """
    home = Home(Path(root))
    checks, found = check_setup(home, load_profile(profile, home.config)), list[Check]()
    executor = ThreadPoolExecutor(1, "checks")
    outcome = executor.submit(_collect, checks, found)
    # Its thread ends with the checks; the page does not wait for them.
    executor.shutdown(wait=False)
    return RunningChecks(found, outcome)


def _collect(checks: Iterable[Check], found: list[Check]) -> None:
    for check in checks:
        found.append(check)  # noqa: PERF402 - others read what is there so far


@st.fragment(run_every=POLL_S)
def _poll_checks(checks: RunningChecks) -> None:
    """Show which checks are finished, and draw the page again when all are."""
    use_language()
    if checks.outcome.done():
        st.rerun()
    # Not as a context: it would be marked as complete at its end.
    box = st.status(translate("Checking ..."), expanded=True)
    for check in checks.found:
        box.write(escape_markdown(f"{translate_sentence(check.what)}: {_state(check)}"))


def _show_checks(checks: Sequence[Check]) -> None:
    missing = [check for check in checks if not check.ok]
    warnings = [check for check in checks if check.warning]
    if missing:
        st.error(
            translate_count(
                "{number} of {requirements} is missing.",
                "{number} of {requirements} are missing.",
                len(missing),
            ).format(requirements=counted(len(checks), "requirement"))
        )
    elif warnings:
        st.warning(
            translate("Everything is in place, with {remarks}.").format(
                remarks=counted(len(warnings), "remark")
            )
        )
    else:
        st.success(translate("Everything that these models need is in place."))
    for check in (*missing, *warnings):
        what, found = translate_sentence(check.what), translate_sentence(check.found)
        st.markdown(f"**{escape_markdown(what)}**: {escape_markdown(found)}")
        st.code(translate_sentence(check.fix), language=None, wrap_lines=True)
    st.header(translate("Requirements"), anchor=False)
    rows = [
        (
            translate_sentence(check.what),
            _state(check),
            translate_sentence(check.found),
        )
        for check in checks
    ]
    show_table(
        translate("Requirements"), (translate("what"), translate("state"), translate("found")), rows
    )


def _state(check: Check) -> str:
    return translate("ok") if check.ok else translate("MISSING")


def _show_failures(failures: Sequence[RecentFailure]) -> None:
    st.header(translate("Recent errors"), anchor=False)
    if not failures:
        st.caption(translate("None."))
    for number, failure in enumerate(failures):
        with st.container(border=True, key=f"trouble_{number}"):
            if failure.trajectory:
                page_link(
                    "trajectory", escape_markdown(failure.where), trajectory=failure.trajectory
                )
            elif failure.video is None:
                st.markdown(f"**{escape_markdown(translate(failure.where))}**")
            else:
                page_link(
                    "video",
                    escape_markdown(translate_sentence(failure.where)),
                    video=failure.video,
                    show="Clips",
                )
            reason = translate_sentence(tags_in_words(failure.told))
            st.write(escape_markdown(reason) or translate("No reason is known."))
            st.caption(format_date(failure.at))
