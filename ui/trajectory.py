"""The trajectory page: every step that led to an answer, opened up."""

from __future__ import annotations

import streamlit as st

from store.queries.trajectories import StoredTrajectory
from ui import address
from ui.app_state import PageState, page_desk
from ui.faults import guarded
from ui.judging import show_judgement
from ui.marks import STATES
from ui.pages import link
from ui.paging import SIZE, offset_of, wanted_offset
from ui.rounds import show_rounds
from ui.times import lasting, moment
from ui.whatif import show_tools
from ui.words import plain
from views.answer_lines import answer_line
from views.library import videos_named
from views.rounds import (
    RUNNING,
    InspectedTrajectory,
    fork_lines,
    inspect_trajectory,
    page_of_trajectories,
)

LOOK_S = 2.0
"""Seconds between looks at a run that goes on."""


def trajectory_page() -> None:
    """One trajectory where the address names it, else the list of them."""
    st.title("Trajectory")
    address.hold()
    guarded(_one if address.told("trajectory") else _list)


def _list() -> None:
    desk = page_desk()
    words = st.text_input("Search the questions", key="q", bind="query-params")
    start = wanted_offset()
    found, total = page_of_trajectories(desk.store, SIZE, start, words or "")
    if not total:
        st.info(
            "No question has these words."
            if words
            else "Nothing has been asked yet: ask a question on the page Ask."
        )
        return
    offset = offset_of(total)
    if offset != start:
        found, _ = page_of_trajectories(desk.store, SIZE, offset, words or "")
    forks = fork_lines(desk.store, [one.id for one in found])
    for one in found:
        _entry(one, forks.get(one.id, ""))


def _entry(one: StoredTrajectory, fork: str) -> None:
    with st.container(border=True, key=f"entry_{one.id}"):
        link("trajectory", plain(one.question.text), trajectory=one.id)
        said = answer_line(one.answer, one.question) if one.answer else "no answer"
        st.write(plain(said))
        state = STATES.get(one.state, one.state)
        st.caption(plain(f"{state}, {moment(one.started_at)}, profile {one.profile}, {one.id}"))
        if fork:
            st.caption(plain(fork))


def _one() -> None:
    desk = page_desk()
    shown = inspect_trajectory(desk.store, address.told("trajectory"))
    _head(desk, shown)
    if shown.row.state == RUNNING:
        _unfinished(desk, shown)
    videos = videos_named(desk.store, shown.row.question.videos)
    show_rounds(desk.store, shown, videos)
    show_tools(desk, shown)


def _head(desk: PageState, shown: InspectedTrajectory) -> None:
    row, history = shown.row, shown.history
    link("trajectory", "← All trajectories")
    st.subheader(plain(row.question.text), anchor=False)
    if row.answer is not None:
        st.markdown(f"**Answer:** {plain(answer_line(row.answer, row.question))}")
    state = STATES.get(row.state, row.state)
    why = f" because {history.why}" if history.why else ""
    told = [
        f"{state}{why}",
        f"profile {row.profile}",
        f"{len(history.rounds)} rounds",
        f"{row.tokens} tokens",
        f"{history.cost_usd:.4f} US dollars",
        lasting(row.seconds),
        moment(row.started_at),
        row.id,
    ]
    st.caption(plain(" · ".join(told)))
    for fork in fork_lines(desk.store, [row.id]).values():
        st.caption(plain(fork))
    for error in history.errors:
        st.error(plain(f"{error.where}: {error.message}"))
    show_judgement(desk.store, row)
    link("ask", "Open the answer with its moments", trajectory=row.id)


def _unfinished(desk: PageState, shown: InspectedTrajectory) -> None:
    name = shown.row.id
    if shown.at_work or desk.runs.running(name):
        _follow(name, len(shown.history.events))
        return
    st.warning("This search was broken off before it had an answer.")
    if st.button("Go on searching", type="primary"):
        desk.runs.resume(desk.runner(shown.row.profile), name)
        st.rerun()


@st.fragment(run_every=LOOK_S)
def _follow(name: str, events: int) -> None:
    """Draws the page again when the run has got further."""
    guarded(lambda: _look(name, events))


def _look(name: str, events: int) -> None:
    st.info("This question is being searched at this moment.")
    shown = inspect_trajectory(page_desk().store, name)
    if len(shown.history.events) != events or shown.row.state != RUNNING:
        st.rerun()
