"""The pages Trajectory, every step that led to an answer, and History, all questions."""

from __future__ import annotations

import streamlit as st

from domain.people import tags_in_words
from domain.trajectory import Failed, Forked
from domain.words import capitalized, counted, shortened, translate, translate_sentence
from library.answers import answer_line
from library.rounds import forks_among, load_history
from library.trajectories import page_of_trajectories
from ui.answer import show_judgement
from ui.app_state import page_state, show_errors
from ui.formatting import escape_markdown, format_date, format_duration, format_usage
from ui.harness_remarks import changed_parts, state_in_words
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginated,
    show_empty,
    text_param,
    update_address_bar,
)
from ui.rounds import show_rounds
from ui.trajectory_tools import show_tools

POLL_S = 2.0
"""Seconds between polls of a run."""


def trajectory_page() -> None:
    """Draw the trajectory that the address names, else the list of all."""
    st.title(translate("Trajectory"))
    update_address_bar()
    if not text_param("trajectory"):
        show_history()
        return
    state = page_state()
    inspected = load_history(state.store, text_param("trajectory"))
    row, errors = inspected.row, inspected.of(Failed)
    page_link("history", translate("← History"))
    st.header(escape_markdown(row.question.text), anchor=False)
    if row.answer is not None:
        answer = answer_line(row.answer, row.question)
        st.markdown(f"**{translate('Answer:')}** {escape_markdown(answer)}")
    status = capitalized(state_in_words(row.state))
    why = inspected.why
    status += translate(" because {why}").format(why=translate(why)) if why else ""
    facts = [status, counted(len(inspected.rounds), "round"), format_duration(row.seconds)]
    if inspected.calls:
        facts.append(format_usage(row.tokens, inspected.cost_usd))
    facts.append(format_date(row.started_at))
    st.caption(escape_markdown(" · ".join(facts)))
    for fork in forks_among(state.store, [row.id]).values():
        show_fork(row.id, fork)
    if errors:
        st.markdown(
            "  \n".join(
                translate("Failed: {reason}").format(
                    reason=escape_markdown(translate_sentence(tags_in_words(error.message)))
                )
                for error in errors
            )
        )
    show_judgement(state.store, row)
    page_link("ask", translate("Open the answer with its citations"), trajectory=row.id)
    if inspected.running:
        name = inspected.row.id
        if inspected.at_work or state.runs.running(name):
            _poll_run(name, len(inspected.events))
        else:
            st.warning(translate("This search was interrupted before it had an answer."))
            if st.button(translate("Resume the search"), type="primary"):
                state.runs.resume(state.runner(inspected.row.profile), name)
                st.rerun()
    if text_param("with_"):  # Who came to compare need not scroll.
        show_tools(state, inspected)
        show_rounds(state, inspected)
        return
    show_rounds(state, inspected)
    show_tools(state, inspected)


@st.fragment(run_every=POLL_S)
def _poll_run(name: str, events: int) -> None:
    """Draw the page again when the run has new events."""
    with show_errors():
        st.info(translate("This search is in progress."))
        inspected = load_history(page_state().store, name)
        if len(inspected.events) != events or not inspected.running:
            st.rerun()


# The page History: every question that was asked, the newest first.

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
    rows = paginated(lambda start: page_of_trajectories(state.store, PAGE_SIZE, start, query or ""))
    if not rows:
        if query:
            st.write(translate("No question matches."))
        else:
            show_empty(translate("Nothing has been asked yet."), translate("Ask a question"), "ask")
        return
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
