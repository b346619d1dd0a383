"""The page Compare: one question by several strategies, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from domain.errors import HomerError, InputError
from domain.trajectory import Failed
from domain.words import counted, translate, translate_sentence
from library.answers import answer_line, confidence_line, note_line, one_line
from library.rounds import (
    History,
    StrategyRow,
    load_history,
    round_headline,
    side_by_side,
)
from library.strategies import askable_titles, built_strategies
from library.videos import all_titles, videos_named
from ui.app_state import PageState, page_state, show_error, show_errors
from ui.ask import QuestionFields, further_fields, question_field, video_field, warn
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_duration, show_table
from ui.navigation import page_link, show_empty, text_params
from ui.player import played_video, show_player

POLL_S = 1.0
"""Seconds between polls of the runs."""
MAX_RUNS = 8
"""Trajectories that an address may name."""
MAX_ALONE = 5
"""Pieces of evidence shown that only one strategy found."""


def compare_page() -> None:
    """Draw the form for a question, and the runs that the address names."""
    st.title(translate("Compare"))
    state = page_state()
    known = all_titles(state.store)
    if not known:
        show_empty(translate("Nothing has been watched yet."), translate("Add a video"), "library")
        return
    runs: list[History] = []
    try:
        runs = [load_history(state.store, name) for name in text_params("trajectory")[:MAX_RUNS]]
    except InputError as error:
        show_error(error)
    # Draw the form; when a valid question is sent, start a run for each strategy.
    names = list(askable_titles())
    asked = runs[0].row.question.videos if runs else tuple(text_params("video"))
    default = [video for video in asked if video in known]
    default = [] if len(default) == len(known) > 1 else default
    with st.form("compare", border=False):
        text, sent = question_field(translate("Compare"))
        videos = video_field(known, default)
        chosen = st.multiselect(
            translate("Strategies"),
            names,
            default=built_strategies(state.store),
            placeholder=translate("Choose strategies"),
        )
        with st.popover(translate("Advanced options"), icon=":material/tune:"):
            fields = QuestionFields(videos, text, *further_fields(state))
    # A container of its own keeps what follows in place.
    with st.container():
        if sent:
            try:
                if not chosen:
                    raise InputError(translate("Choose at least one strategy."))
                question, runner = fields.question(), state.runner(fields.profile)
                with st.spinner(translate("Starting the searches ...")):
                    names = [state.runs.ask(runner, question, strategy) for strategy in chosen]
                st.query_params["trajectory"] = names
                st.rerun()
            except (HomerError, ValueError) as error:
                warn(error)
    if not runs:
        return
    st.divider()
    st.markdown(f"**{escape_markdown(runs[0].row.question.text)}**")
    if any(_in_progress(state, run) for run in runs):
        _poll_runs([run.row.id for run in runs])
        return
    _show_comparison(state, runs)


def _in_progress(state: PageState, run: History) -> bool:
    return run.running and (run.at_work or state.runs.running(run.row.id))


@st.fragment(run_every=POLL_S)
def _poll_runs(names: Sequence[str]) -> None:
    """Show how far the runs are. They do not depend on an open page."""
    with show_errors():
        state = page_state()
        runs = [load_history(state.store, name) for name in names]
        if not any(_in_progress(state, run) for run in runs):
            st.rerun()
        # A block of its own would mark it as complete when the block ends.
        status = st.status(translate("Searching the memory ..."), expanded=True)
        for run in runs:
            rounds = [round_.number for round_ in run.rounds]
            last = round_headline(run, rounds[-1]) if rounds else translate("starting")
            line = translate("done") if not _in_progress(state, run) else last
            status.write(escape_markdown(f"{run.row.machine}: {line}"))


def _show_comparison(state: PageState, runs: Sequence[History]) -> None:
    found = side_by_side(runs)
    answers = (
        translate("The answers agree.") if found.answers_agree else translate("The answers differ.")
    )
    shared = translate("{moments} found by all.").format(moments=counted(found.shared, "moment"))
    st.caption(f"{answers} {shared}")
    heads = (
        translate("strategy"),
        translate("rounds"),
        translate("searches"),
        translate("model calls"),
        translate("tokens"),
        translate("time"),
    )
    rows = [
        (
            row.strategy,
            row.rounds,
            row.searches,
            row.calls,
            row.tokens,
            format_duration(row.seconds),
        )
        for row in found.rows
    ]
    show_table(translate("The strategies beside each other"), heads, rows)
    for column, run, row in zip(st.columns(len(runs)), runs, found.rows, strict=True):
        with column:
            _show_strategy(state, run, row)
    names = runs[0].row.question.videos
    videos, video = videos_named(state.store, names), played_video()
    if video in videos:
        st.caption(escape_markdown(video_title(videos, video)))
        show_player(videos[video])


def _show_strategy(state: PageState, run: History, row: StrategyRow) -> None:
    question = run.row.question
    videos = videos_named(state.store, question.videos)
    st.header(escape_markdown(row.strategy), anchor=False)
    if row.answer is None:
        reasons = [one_line(translate_sentence(error.message)) for error in run.of(Failed)]
        st.markdown(
            translate("Failed: {reason}").format(reason=escape_markdown(reasons[-1]))
            if reasons
            else translate("There is no answer.")
        )
    else:
        answer = answer_line(row.answer, question)
        st.markdown(f"**{escape_markdown(answer)}**")
        st.caption(escape_markdown(f"{confidence_line(row.answer)}. {note_line(row.answer)}"))
        for number, citation in enumerate(row.answer.citations):
            show_moment(state.store, citation, videos, f"cited_{run.row.id}_{number}")
    with st.expander(counted(row.rounds, "round")):
        for round_ in run.rounds:
            label = escape_markdown(round_headline(run, round_.number))
            page_link("trajectory", label, trajectory=run.row.id, round=round_.number)
    if row.alone:
        with st.expander(translate("Found by no other: {count}").format(count=len(row.alone))):
            for number, piece in enumerate(row.alone[:MAX_ALONE]):
                show_moment(state.store, piece, videos, f"alone_{run.row.id}_{number}")
    page_link("trajectory", translate("See every step"), trajectory=run.row.id)
