"""The page Ask: the question, the rounds of the run, the answer with its citations."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from domain.errors import HomerError, InputError
from domain.words import ENGLISH, counted, reader, shortened, translate, translate_sentence
from library.rounds import History, load_history, recently_asked
from library.suggestions import SuggestedQuestion, suggested_questions
from library.videos import all_titles, newest_titles
from store.database import Store
from ui.answer import show_run
from ui.app_state import HASH_BY_URL, PageState, page_state
from ui.errors import show_error, show_errors
from ui.formatting import escape_markdown
from ui.navigation import page_link, set_params, show_empty, text_param, text_params
from ui.question_form import (
    QuestionFields,
    further_fields,
    question_field,
    strategy_field,
    video_field,
    warn,
)

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
    show_errors(_body)


def _body() -> None:
    state = page_state()
    known = all_titles(state.store)
    if not known:
        show_empty(translate("Nothing has been watched yet."), translate("Add a video"), "library")
        return
    name = text_param("trajectory")
    run = _load(state, name) if name else None
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
                key, note = f"suggested_{index}", _asked_in_english(one.text)
                if st.button(label, key=key, icon=":material/lightbulb:", help=note):
                    fields = QuestionFields((one.video,), one.text, "", "", state.profile)
                    _start_run(state, fields, state.toolbox().profile.settings.ask.strategy)
        with right:
            _show_recent(state)
            _show_newest_videos(state.store, len(known))


def _asked_in_english(text: str) -> str | None:
    """Say that a question is asked in English; None if it is shown so."""
    if reader.get() is ENGLISH:
        return None
    return escape_markdown(translate("Asked in English: {question}").format(question=text))


def _show_newest_videos(store: Store, total: int) -> None:
    """Link the newest videos, so that their pages are a press away."""
    st.header(translate("Newest videos"), anchor=False)
    for video, title in newest_titles(store, MAX_NEWEST).items():
        page_link("video", escape_markdown(shortened(title)), video=video)
    if total > MAX_NEWEST:
        page_link("library", translate("All {videos}").format(videos=counted(total, "video")))


def _show_recent(state: PageState) -> None:
    asked, total = recently_asked(state.store, MAX_RECENT)
    if not asked:
        return
    st.header(translate("Recent questions"), anchor=False)
    for text, trajectory in asked:
        page_link("ask", escape_markdown(shortened(text)), trajectory=trajectory)
    if total > len(asked):
        page_link(
            "history", translate("All {questions}").format(questions=counted(total, "question"))
        )


@st.cache_data(ttl=60, max_entries=50, show_spinner=False, hash_funcs=HASH_BY_URL)
def _suggestions(store: Store, videos: tuple[str, ...]) -> list[SuggestedQuestion]:
    """Return suggested questions; they are read at most once a minute."""
    return suggested_questions(store, videos)


def _load(state: PageState, name: str) -> History | None:
    try:
        return load_history(state.store, name)
    except InputError as error:
        show_error(error)
        return None


def _question_form(state: PageState, known: Mapping[str, str], run: History | None) -> None:
    """Draw the form; when a valid question is sent, start its run in the background."""
    with st.form("question", border=False):
        text, sent = question_field(translate("Ask"))
        with st.container(horizontal=True, key="scope"):
            videos = video_field(known, _default_videos(known, run))
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


def _default_videos(known: Mapping[str, str], run: History | None) -> list[str]:
    """Return the videos selected at first: none stands for all of them.

    A follow-up question keeps the videos of the last one.
    """
    wanted = run.row.question.videos if run else text_params("video")
    found = [name for name in wanted if name in known]
    return [] if len(found) == len(known) > 1 else found


def _start_run(state: PageState, fields: QuestionFields, strategy: str) -> None:
    question = fields.question()
    with st.spinner(translate("Starting the search ...")):
        name = state.runs.ask(state.runner(fields.profile), question, strategy)
    set_params(trajectory=name, video=None)
    st.rerun()
