"""The pages Ask and Compare, and the fields of a question that both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from domain.asking import Question, check_options
from domain.errors import HomerError, InputError
from domain.time import parse_clock
from domain.trajectory import Failed
from domain.words import (
    ENGLISH,
    capitalized,
    counted,
    reader,
    shortened,
    translate,
    translate_sentence,
)
from library.answers import answer_line, confidence_line, note_line, one_line
from library.memory import SuggestedQuestion, suggested_questions
from library.rounds import (
    History,
    StrategyRow,
    load_history,
    recently_asked,
    round_headline,
    side_by_side,
)
from library.strategies import askable_titles, built_strategies
from library.videos import all_titles, newest_titles, videos_named
from models.profile import profile_names
from store.database import Store
from ui.answer import show_run
from ui.app_state import HASH_BY_URL, PageState, page_state, show_error, show_errors
from ui.evidence import show_moment, video_title
from ui.formatting import escape_markdown, format_duration, show_table
from ui.navigation import page_link, set_params, show_empty, text_param, text_params
from ui.player import played_video, show_player


@dataclass(frozen=True)
class QuestionFields:
    """What a person filled in."""

    videos: tuple[str, ...]
    text: str
    options: str
    as_of: str
    profile: str

    def question(self) -> Question:
        """Build the question.

        Raises:
            InputError: a field is empty, or options cannot be told apart.
            ValueError: the time cannot be read.
        """
        if not self.text.strip():
            raise InputError(translate("Write a question first."))
        if not self.videos:
            raise InputError(translate("Choose at least one video."))
        lines = [line.strip() for line in self.options.splitlines() if line.strip()]
        as_of_ms = parse_clock(self.as_of) if self.as_of.strip() else None
        choices = check_options(lines)
        return Question(
            text=self.text.strip(), videos=self.videos, options=choices, as_of_ms=as_of_ms
        )


def question_field(button: str, placeholder: str = "") -> tuple[str, bool]:
    """Draw the box for a question with its button; return the text, and whether it was sent."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="question_row"):
        text = st.text_input(
            translate("Question"),
            placeholder=placeholder or translate("Ask anything about your videos"),
            icon=":material/search:",
        )
        sent = st.form_submit_button(button, type="primary")
    return text, sent


def video_field(known: Mapping[str, str], default: Sequence[str]) -> tuple[str, ...]:
    """Draw the choice of videos, and return them; without a choice, all of them."""
    chosen = st.multiselect(
        translate("Videos"),
        list(known),
        default=list(default),
        format_func=lambda name: known[name],
        placeholder=translate("All videos") if len(known) > 1 else next(iter(known.values()), ""),
        key=f"videos_{'_'.join(default)[:80]}",
        label_visibility="collapsed",
    )
    return tuple(chosen or known)


def further_fields(state: PageState) -> tuple[str, str, str]:
    """Draw the fields for options, time and models; return the three."""
    options = st.text_area(translate("Choices, one per line"), height=110)
    as_of = st.text_input(
        translate("As of"), placeholder=translate("12:30; empty: the whole video")
    )
    names = profile_names(state.store.home.config)
    profile = st.selectbox(translate("Models"), names, index=index_of(names, state.profile))
    return options, as_of, profile


def strategy_field(state: PageState) -> str:
    """Draw the choice of a strategy, at first that of the settings."""
    titles = askable_titles()
    names, default = list(titles), state.toolbox().profile.settings.ask.strategy
    return st.selectbox(
        translate("Strategy"),
        names,
        index=index_of(names, default),
        format_func=lambda name: f"{name}: {translate(titles[name])}",
    )


def index_of(names: Sequence[str], name: str) -> int:
    """Return where a name is in a list; 0 where it is not."""
    return list(names).index(name) if name in names else 0


def warn(error: HomerError | ValueError) -> None:
    """Show why a question cannot be asked."""
    st.warning(escape_markdown(capitalized(translate_sentence(str(error)))))


# The page Ask: the question, the rounds of the run, the answer with its citations.

MAX_SUGGESTED_VIDEOS = 3
"""Videos that questions are suggested of."""
MAX_RECENT = 6
"""Recent questions listed."""
MAX_NEWEST = 4
"""Newest videos listed."""
MAX_TITLE_CHARS = 30
"""Characters shown of a title after a suggested question."""


def ask_page() -> None:
    """Draw the form for a question, and the run that the address names."""
    st.title(translate("Ask"))
    state = page_state()
    known = all_titles(state.store)
    if not known:
        show_empty(translate("Nothing has been watched yet."), translate("Add a video"), "library")
        return
    name = text_param("trajectory")
    run = None
    if name:
        try:
            run = load_history(state.store, name)
        except InputError as error:
            show_error(error)
    _question_form(state, known, run)
    if run is not None:
        st.header(escape_markdown(run.row.question.text), anchor=False)
        show_run(state, run)
    elif not name:
        # Draw questions to begin with: suggested ones, and those that were asked before.
        videos = [video for video in text_params("video") if video in known] or list(known)
        suggested = _suggestions(state.store, tuple(videos[:MAX_SUGGESTED_VIDEOS]))
        left, right = st.columns(2)
        with left:
            if suggested:
                st.header(translate("Try a question"), anchor=False)
            for index, one in enumerate(suggested):
                title = escape_markdown(shortened(known[one.video], MAX_TITLE_CHARS))
                label = f"{escape_markdown(translate_sentence(one.text))} :small[{title}]"
                key, note = f"suggested_{index}", None
                if reader.get() is not ENGLISH:
                    asked_as = translate("Asked in English: {question}").format(question=one.text)
                    note = escape_markdown(asked_as)
                if st.button(label, key=key, icon=":material/lightbulb:", help=note):
                    fields = QuestionFields((one.video,), one.text, "", "", state.profile)
                    _start_run(state, fields, state.toolbox().profile.settings.ask.strategy)
        with right:
            recent, total = recently_asked(state.store, MAX_RECENT)
            if recent:
                st.header(translate("Recent questions"), anchor=False)
            for text, trajectory in recent:
                page_link("ask", escape_markdown(shortened(text)), trajectory=trajectory)
            if total > len(recent) > 0:
                questions = counted(total, "question")
                page_link("history", translate("All {questions}").format(questions=questions))
            # Link the newest videos, so that their pages are a press away.
            total = len(known)
            st.header(translate("Newest videos"), anchor=False)
            for video, title in newest_titles(state.store, MAX_NEWEST).items():
                page_link("video", escape_markdown(shortened(title)), video=video)
            if total > MAX_NEWEST:
                page_link(
                    "library", translate("All {videos}").format(videos=counted(total, "video"))
                )


@st.cache_data(ttl=60, max_entries=50, show_spinner=False, hash_funcs=HASH_BY_URL)
def _suggestions(store: Store, videos: tuple[str, ...]) -> list[SuggestedQuestion]:
    """Return suggested questions; they are read at most once a minute."""
    return suggested_questions(store, videos)


def _question_form(state: PageState, known: Mapping[str, str], run: History | None) -> None:
    """Draw the form; when a valid question is sent, start its run in the background."""
    with st.form("question", border=False):
        text, sent = question_field(translate("Ask"))
        with st.container(horizontal=True, key="scope"):
            # The videos selected at first: none stands for all of them. A follow-up question keeps
            # the videos of the last one.
            wanted = run.row.question.videos if run else text_params("video")
            found = [name for name in wanted if name in known]
            default_videos = [] if len(found) == len(known) > 1 else found
            videos = video_field(known, default_videos)
            with st.popover(translate("Advanced options"), icon=":material/tune:"):
                fields = QuestionFields(videos, text, *further_fields(state))
                strategy = strategy_field(state)
    # A container of its own keeps what follows in place.
    with st.container():
        if sent:
            try:
                _start_run(state, fields, strategy)
            except (HomerError, ValueError) as error:
                warn(error)


def _start_run(state: PageState, fields: QuestionFields, strategy: str) -> None:
    question = fields.question()
    with st.spinner(translate("Starting the search ...")):
        name = state.runs.ask(state.runner(fields.profile), question, strategy)
    set_params(trajectory=name, video=None)
    st.rerun()


# The page Compare: one question by several strategies, side by side.


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
    # As on the page Ask, none stands for all of them.
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
