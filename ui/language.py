"""The language of the pages: that of the browser, or the one that was chosen."""

from __future__ import annotations

import streamlit as st

from ui.components import component
from views.translation import best_language, language, language_names, translate

CHOSEN = "language"
"""Session key of the language that was chosen."""


def use_language() -> None:
    """Translate what this run of the page draws.

    Streamlit runs fragments and the callbacks of buttons apart from the page, in threads of their
    own, so they call this too.
    """
    language.set(st.session_state.get(CHOSEN) or best_language(st.context.locale or ""))


def show_language() -> None:
    """Draw the choice of a language in the sidebar."""
    names = language_names()
    if len(names) < 2:
        return
    st.session_state.setdefault(CHOSEN, language.get())
    with st.sidebar:
        # Readers of screens pronounce a page by the language that it names.
        component("language")(key="page language", data={"language": language.get()})
        st.selectbox(
            translate("Language"), list(names), format_func=lambda code: names[code], key=CHOSEN
        )
