"""The trajectory page: every step that led to an answer."""

from __future__ import annotations

import streamlit as st

from domain.people import tags_in_words
from domain.trajectory import Failed
from domain.words import capitalized, counted, translate, translate_sentence
from library.answers import answer_line
from library.rounds import forks_among, load_history
from ui.answer import show_judgement
from ui.app_state import page_state, show_errors
from ui.formatting import escape_markdown, format_date, format_duration, format_usage
from ui.harness_remarks import state_in_words
from ui.history import show_fork, show_history
from ui.navigation import page_link, text_param, update_address_bar
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
