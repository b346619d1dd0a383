"""The page History: every question that was asked, the newest first."""

from __future__ import annotations

import streamlit as st

from domain.trajectory import Forked
from domain.words import capitalized, shortened, translate
from library.answers import answer_line
from library.rounds import forks_among
from library.trajectories import page_of_trajectories
from ui.app_state import page_state
from ui.formatting import escape_markdown, format_date
from ui.harness_remarks import changed_parts, state_in_words
from ui.navigation import PAGE_SIZE, page_link, paginate, requested_offset, show_empty

MAX_ANSWER_CHARS = 240
"""Characters shown of an answer in the list."""


def history_page() -> None:
    """Draw the questions that were asked, with their answers."""
    st.title(translate("History"))
    show_history()


def show_history() -> None:
    """Draw a page of the questions, and the box that searches them."""
    state = page_state()
    query = st.text_input(
        translate("Search the questions"), key="q", bind="query-params", icon=":material/search:"
    )
    requested = requested_offset()
    rows, total = page_of_trajectories(state.store, PAGE_SIZE, requested, query or "")
    if not total:
        if query:
            st.write(translate("No question matches."))
        else:
            show_empty(translate("Nothing has been asked yet."), translate("Ask a question"), "ask")
        return
    offset = paginate(total)
    if offset != requested:
        rows, _ = page_of_trajectories(state.store, PAGE_SIZE, offset, query or "")
    forks = forks_among(state.store, [row.id for row in rows])
    for row in rows:
        fork = forks.get(row.id)
        with st.container(border=True, key=f"entry_{row.id}"):
            page_link("trajectory", escape_markdown(row.question.text), trajectory=row.id)
            answer = answer_line(row.answer, row.question) if row.answer else translate("No answer")
            st.write(escape_markdown(shortened(answer, MAX_ANSWER_CHARS)))
            status = capitalized(state_in_words(row.state))
            st.caption(escape_markdown(f"{status}, {format_date(row.started_at)}"))
            if fork is not None:
                show_fork(row.id, fork)


def show_fork(name: str, fork: Forked) -> None:
    """Say what a fork changed, with links to what it was forked from and to their comparison."""
    line = translate("Forked from an earlier search at round {number}: {change}").format(
        number=fork.at, change=changed_parts(fork)
    )
    with st.container(horizontal=True, vertical_alignment="center", key=f"fork_{name}"):
        st.caption(escape_markdown(line))
        page_link("trajectory", translate("Open the original"), trajectory=fork.parent)
        page_link("trajectory", translate("Compare"), trajectory=fork.parent, with_=name)
