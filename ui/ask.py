"""The page Ask: the question, the rounds of the run, the answer with its citations."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from domain.asking import Answer, Question, level_of_confidence
from domain.errors import HomerError, InputError
from domain.media import Video
from ui.app_state import PageState, page_state
from ui.errors import show_error, show_errors
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_duration, format_time
from ui.harness_remarks import show_remarks
from ui.judgement import show_judgement
from ui.navigation import page_link, set_params, text_param, text_params
from ui.player import played_video, show_player
from ui.question_form import QuestionFields, further_fields, index_of, main_fields, warn
from views.answer_lines import answer_line, one_line, reply_tail
from views.library import all_titles, videos_named
from views.rounds import RUNNING, InspectedTrajectory, inspect_trajectory, round_headline
from views.strategies import list_strategies

MAX_REPLY_CHARS = 120
"""Characters shown of the reply that a model is writing."""

POLL_S = 1.0
"""Seconds between polls of a run."""


def ask_page() -> None:
    """Draw the form for a question, and the run that the address names."""
    st.title("Ask")
    show_errors(_body)


def _body() -> None:
    state = page_state()
    known = all_titles(state.store)
    if not known:
        st.info(
            "Nothing has been watched yet. Add a video on the page Library, or in a terminal: "
            "`homer ingest FILE`"
        )
        return
    name = text_param("trajectory")
    run = _load(state, name) if name else None
    _question_form(state, known, run)
    if run is not None:
        _show_run(state, run)


def _load(state: PageState, name: str) -> InspectedTrajectory | None:
    try:
        return inspect_trajectory(state.store, name)
    except InputError as error:
        show_error(error)
        return None


def _question_form(
    state: PageState, known: Mapping[str, str], run: InspectedTrajectory | None
) -> None:
    """Draw the form; when a valid question is sent, start its run in the background."""
    with st.form("question", border=False):
        videos, text = main_fields(known, _default_videos(known, run))
        with st.expander("Advanced options"):
            fields = QuestionFields(videos, text, *further_fields(state))
            strategy = _select_strategy(state)
        sent = st.form_submit_button("Ask", type="primary")
    # A container of its own keeps what follows in place.
    with st.container():
        if sent:
            try:
                _start_run(state, fields, strategy)
            except (HomerError, ValueError) as error:
                warn(error)


def _select_strategy(state: PageState) -> str:
    """Draw the choice of a strategy, at first that of the settings."""
    titles = {strategy.name: strategy.title for strategy in list_strategies()}
    names, default = list(titles), state.toolbox().profile.settings.ask.strategy
    return st.selectbox(
        "Strategy",
        names,
        index=index_of(names, default),
        format_func=lambda name: f"{name}: {titles[name]}",
    )


def _default_videos(known: Mapping[str, str], run: InspectedTrajectory | None) -> list[str]:
    """Return the videos selected at first; a follow-up question keeps those of the last one."""
    wanted = run.row.question.videos if run else text_params("video")
    found = [name for name in wanted if name in known]
    return found or list(known)[:1]


def _start_run(state: PageState, fields: QuestionFields, strategy: str) -> None:
    question = fields.question()
    with st.spinner("Starting the search ..."):
        name = state.runs.ask(state.runner(fields.profile), question, strategy)
    set_params(trajectory=name, video=None)
    st.rerun()


def _show_run(state: PageState, run: InspectedTrajectory) -> None:
    st.divider()
    st.markdown(f"**{escape_markdown(run.row.question.text)}**")
    if run.row.state == RUNNING and (run.at_work or state.runs.running(run.row.id)):
        _poll_run(run.row.id)
        return
    if run.row.answer is None:
        _show_interrupted(state, run)
        return
    _show_answer(state, run, run.row.answer)


def _show_interrupted(state: PageState, run: InspectedTrajectory) -> None:
    reasons = [error.message for error in run.history.errors]
    message = (
        f"The search was interrupted: {reasons[-1]}" if reasons else "The search was interrupted."
    )
    st.error(escape_markdown(message))
    if st.button("Resume the search", type="primary"):
        state.runs.resume(state.runner(run.row.profile), run.row.id)
        st.rerun()
    page_link("trajectory", "See every step", trajectory=run.row.id)


@st.fragment(run_every=POLL_S)
def _poll_run(name: str) -> None:
    """Show the rounds as they come. The run does not depend on an open page."""
    show_errors(lambda: _show_progress(name))


def _show_progress(name: str) -> None:
    state = page_state()
    run = inspect_trajectory(state.store, name)
    if run.row.state != RUNNING:
        st.rerun()
    rounds = [round_.number for round_ in run.history.rounds]
    with st.status("Searching the memory ...", expanded=True):
        for number in rounds[:-1]:
            st.write(escape_markdown(round_headline(run.history, number)))
        if rounds:
            st.markdown(f"**{escape_markdown(round_headline(run.history, rounds[-1]))}**")
            show_remarks(run.remarks(rounds[-1]))
        partial_reply = state.runs.said(name)
        if partial_reply is not None:
            st.caption(escape_markdown(reply_tail(partial_reply, MAX_REPLY_CHARS)))
    if state.runs.running(name):
        st.button("Stop and keep the best answer so far", on_click=state.runs.stop, args=(name,))
    else:
        st.caption("Another homer process runs this search: stop it there with Ctrl-C.")
    page_link("trajectory", "See every step", trajectory=name)


def _show_answer(state: PageState, run: InspectedTrajectory, answer: Answer) -> None:
    row = run.row
    videos = videos_named(state.store, row.question.videos)
    left, right = st.columns([3, 2])
    with left:
        _show_answer_text(row.question, answer)
        took = f"{len(run.history.rounds)} rounds, {format_duration(row.seconds)}"
        st.caption(escape_markdown(f"{_confidence_line(answer)} {took}. {answer.note}"))
        show_judgement(state.store, row)
        _show_round_links(run)
        for number, citation in enumerate(answer.citations):
            show_moment(state.store, citation, videos, f"cited_{row.id}_{number}")
        page_link("trajectory", "See every step", trajectory=row.id)
    with right:
        _show_player(answer, videos)


def _confidence_line(answer: Answer) -> str:
    """Return the confidence and standing of an answer in sentences."""
    line = f"Confidence {level_of_confidence(answer.confidence)} ({answer.confidence:.2f})."
    return f"{line} {answer.standing.capitalize()}." if answer.standing else line


def _show_answer_text(question: Question, answer: Answer) -> None:
    """Show an answer, "Can't tell" or "Not in memory", each in its own style."""
    as_of = "" if question.as_of_ms is None else f"(as of {format_time(question.as_of_ms)})"
    if not answer.not_in_memory and not answer.declined:
        st.subheader(escape_markdown(f"{answer_line(answer, question)} {as_of}"), anchor=False)
        return
    if answer.declined:
        st.info(
            f"**Can't tell** {escape_markdown(as_of)}  \n{escape_markdown(one_line(answer.text))}"
        )
        return
    st.warning(f"**Not in memory** {escape_markdown(as_of)}  \n{escape_markdown(answer.text)}")
    if answer.searched:
        st.markdown("Searched:")
        st.markdown("\n".join(f"- {escape_markdown(query)}" for query in answer.searched))


def _show_round_links(run: InspectedTrajectory) -> None:
    """Link each round, on a line of its own."""
    rounds = run.history.rounds
    with st.expander(f"{len(rounds)} rounds of searching"):
        for round_ in rounds:
            label = round_headline(run.history, round_.number)
            page_link(
                "trajectory", escape_markdown(label), trajectory=run.row.id, round=round_.number
            )


def _show_player(answer: Answer, videos: Mapping[str, Video]) -> None:
    first = answer.citations[0] if answer.citations else None
    video = played_video()
    if video not in videos:
        video = first.video if first else next(iter(videos), "")
    if video in videos:
        st.caption(escape_markdown(video_title(videos, video)))
        start = first.span.start_ms if first and first.video == video else 0
        show_player(videos[video], start)
