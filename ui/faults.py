"""What went wrong, said so that one knows what to do; a lost database is waited for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from domain.errors import DatabaseError, HomerError
from telemetry.logs import log_error
from ui.files import reachable
from ui.words import plain

AGAIN_S = 2.0
"""Seconds between looks whether the database is back."""


def guarded(body: Callable[[], None]) -> None:
    """Draws a page's body; an error of Homer's is one box in its place."""
    try:
        body()
    except DatabaseError as error:
        log_error(error)
        _lost(str(error))
    except HomerError as error:
        log_error(error)
        complain(error)
    except Exception as error:
        log_error(error)
        raise


def complain(error: HomerError) -> None:
    """One box with what went wrong and what to do."""
    st.error(plain(str(error)))


@st.fragment(run_every=AGAIN_S)
def _lost(message: str) -> None:
    """Says what happened, and draws the page again once the database answers."""
    st.error(plain(message))
    st.caption("Nothing is lost. This page goes on by itself as soon as the database is back.")
    if reachable():
        st.rerun()
