"""Show errors on a page; wait for a lost database."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from domain.errors import DatabaseError, HomerError
from domain.words import translate, translate_sentence
from telemetry.logs import log_error
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import database_answers

DATABASE_POLL_S = 2.0
"""Seconds between checks whether the database answers again."""


def show_errors(body: Callable[[], None]) -> None:
    """Draw the body of a page or a fragment, or a box with the error that it raised."""
    use_language()
    try:
        body()
    except DatabaseError as error:
        log_error(error)
        _wait_for_database(str(error))
    except HomerError as error:
        log_error(error)
        show_error(error)
    except Exception as error:
        log_error(error)
        raise


def show_error(error: HomerError) -> None:
    """Draw a box with the message of an error."""
    st.error(escape_markdown(translate_sentence(str(error))))


@st.fragment(run_every=DATABASE_POLL_S)
def _wait_for_database(message: str) -> None:
    """Draw the error, and draw the page again once the database answers."""
    use_language()
    st.error(escape_markdown(translate_sentence(message)))
    st.caption(translate("Nothing is lost. This page continues as soon as the database is back."))
    if database_answers():
        st.rerun()
