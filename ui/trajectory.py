"""The trajectory page: every step that led to an answer."""

from __future__ import annotations

import streamlit as st

from store.queries.trajectories import StoredTrajectory
from ui.app_state import PageState, page_state
from ui.errors import show_errors
from ui.formatting import escape_markdown, format_date, format_duration
from ui.harness_remarks import STATES
from ui.judgement import show_judgement
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginate,
    requested_offset,
    text_param,
    update_address_bar,
)
from ui.rounds import show_rounds
from ui.trajectory_tools import show_tools
from views.answer_lines import answer_line
from views.library import videos_named
from views.rounds import (
    RUNNING,
    InspectedTrajectory,
    fork_lines,
    inspect_trajectory,
    page_of_trajectories,
)

POLL_S = 2.0
"""Seconds between polls of a run."""


def trajectory_page() -> None:
    """Draw the trajectory that the address names, else the list of trajectories."""
    st.title("Trajectory")
    update_address_bar()
    show_errors(_show_trajectory if text_param("trajectory") else _show_trajectories)


def _show_trajectories() -> None:
    state = page_state()
    query = st.text_input("Search the questions", key="q", bind="query-params")
    requested = requested_offset()
    rows, total = page_of_trajectories(state.store, PAGE_SIZE, requested, query or "")
    if not total:
        st.info(
            "No question matches."
            if query
            else "Nothing has been asked yet: ask a question on the page Ask."
        )
        return
    offset = paginate(total)
    if offset != requested:
        rows, _ = page_of_trajectories(state.store, PAGE_SIZE, offset, query or "")
    forks = fork_lines(state.store, [row.id for row in rows])
    for row in rows:
        _show_entry(row, forks.get(row.id, ""))


def _show_entry(row: StoredTrajectory, fork: str) -> None:
    with st.container(border=True, key=f"entry_{row.id}"):
        page_link("trajectory", escape_markdown(row.question.text), trajectory=row.id)
        answer = answer_line(row.answer, row.question) if row.answer else "no answer"
        st.write(escape_markdown(answer))
        status = STATES.get(row.state, row.state)
        st.caption(
            escape_markdown(
                f"{status}, {format_date(row.started_at)}, profile {row.profile}, {row.id}"
            )
        )
        if fork:
            st.caption(escape_markdown(fork))


def _show_trajectory() -> None:
    state = page_state()
    inspected = inspect_trajectory(state.store, text_param("trajectory"))
    _show_head(state, inspected)
    if inspected.row.state == RUNNING:
        _show_unfinished(state, inspected)
    videos = videos_named(state.store, inspected.row.question.videos)
    show_rounds(state.store, inspected, videos)
    show_tools(state, inspected)


def _show_head(state: PageState, inspected: InspectedTrajectory) -> None:
    row, history = inspected.row, inspected.history
    page_link("trajectory", "← All trajectories")
    st.subheader(escape_markdown(row.question.text), anchor=False)
    if row.answer is not None:
        st.markdown(f"**Answer:** {escape_markdown(answer_line(row.answer, row.question))}")
    status = STATES.get(row.state, row.state)
    why = f" because {history.why}" if history.why else ""
    facts = [
        f"{status}{why}",
        f"profile {row.profile}",
        f"{len(history.rounds)} rounds",
        f"{row.tokens} tokens",
        f"{history.cost_usd:.4f} US dollars",
        format_duration(row.seconds),
        format_date(row.started_at),
        row.id,
    ]
    st.caption(escape_markdown(" · ".join(facts)))
    for fork in fork_lines(state.store, [row.id]).values():
        st.caption(escape_markdown(fork))
    for error in history.errors:
        st.error(escape_markdown(f"{error.where}: {error.message}"))
    show_judgement(state.store, row)
    page_link("ask", "Open the answer with its citations", trajectory=row.id)


def _show_unfinished(state: PageState, inspected: InspectedTrajectory) -> None:
    name = inspected.row.id
    if inspected.at_work or state.runs.running(name):
        _poll_run(name, len(inspected.history.events))
        return
    st.warning("This search was interrupted before it had an answer.")
    if st.button("Resume the search", type="primary"):
        state.runs.resume(state.runner(inspected.row.profile), name)
        st.rerun()


@st.fragment(run_every=POLL_S)
def _poll_run(name: str, events: int) -> None:
    """Draw the page again when the run has new events."""
    show_errors(lambda: _rerun_if_changed(name, events))


def _rerun_if_changed(name: str, events: int) -> None:
    st.info("This search is in progress.")
    inspected = inspect_trajectory(page_state().store, name)
    if len(inspected.history.events) != events or inspected.row.state != RUNNING:
        st.rerun()
