"""Application state: opened once, shared by all pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from domain.errors import DatabaseError, HomerError
from domain.words import translate, translate_sentence
from flows.agent_pool import AgentPool
from graphs.concurrent import BackgroundRuns
from models.profile import load_profile
from store.database import Store
from telemetry.logs import log_error
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import database_answers, shared_store
from ui.sign_in import user_in_grants

HASH_BY_URL: dict[str | type[Any], Callable[[Any], Any]] = {
    Store: lambda store: (store.url, store.viewer)
}
"""How a cache hashes its arguments: each library, and each viewer of it, has its own entries."""


@dataclass(frozen=True)
class PageState(AgentPool):
    """The store, the agents by profile, and the runs in the background."""

    runs: BackgroundRuns = field(default_factory=BackgroundRuns)


def page_state() -> PageState:
    """Return the application state, with what the user may see."""
    return _whole_state().for_user(user_in_grants())


def is_viewer() -> bool:
    """Check whether the user may only look and ask; also while nobody can tell."""
    name = user_in_grants()
    try:
        return name is not None and not _whole_state().for_user(name).store.may_change
    except HomerError:
        # While nobody can tell, a page offers nothing that changes the library.
        return True


@st.cache_resource(show_spinner="Opening the library ...")
def _whole_state() -> PageState:
    store = shared_store()
    return PageState(store, load_profile(None, store.home.config).name)


# Show errors on a page; wait for a lost database.

DATABASE_POLL_S = 2.0
"""Seconds between checks whether the database answers again."""


@contextmanager
def show_errors() -> Iterator[None]:
    """Draw what is inside, or a box with the error that it raised."""
    use_language()
    try:
        yield
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
    st.error(escape_markdown(translate_sentence(str(error))))


@st.fragment(run_every=DATABASE_POLL_S)
def _wait_for_database(message: str) -> None:
    """Draw the error, and draw the page again once the database answers."""
    use_language()
    st.error(escape_markdown(translate_sentence(message)))
    st.caption(translate("Nothing is lost. This page continues as soon as the database is back."))
    if database_answers():
        st.rerun()
