"""The fields of a question, as the pages Ask and Compare have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from domain.asking import Question, check_options
from domain.errors import HomerError, InputError
from domain.time import parse_clock
from domain.words import capitalized, translate, translate_sentence
from library.strategies import askable_titles
from models.profile import profile_names
from ui.app_state import PageState
from ui.formatting import escape_markdown


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
