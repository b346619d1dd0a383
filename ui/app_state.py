"""Application state: opened once, shared by all pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from graphs.agent_pool import AgentPool
from graphs.background import BackgroundRuns
from models.profile import load_profile
from store.database import Store
from ui.media import shared_store

HASH_BY_URL: dict[str | type[Any], Callable[[Any], Any]] = {Store: lambda store: store.url}
"""How a cache hashes its arguments: each library has its own entries."""


@dataclass(frozen=True)
class PageState(AgentPool):
    """The store, the agents by profile, and the runs in the background."""

    runs: BackgroundRuns = field(default_factory=BackgroundRuns)


@st.cache_resource(show_spinner="Opening the library ...")
def page_state() -> PageState:
    """Return the application state of this process."""
    store = shared_store()
    return PageState(store, load_profile(None, store.home.config).name)
