"""Application state: opened once, shared by all pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from domain.errors import HomerError
from flows.workspace import Workspace
from graphs.agent_pool import AgentPool
from graphs.background import BackgroundRuns
from models.profile import load_profile
from store.database import Store
from ui.media import shared_store
from ui.sign_in import user_in_grants

HASH_BY_URL: dict[str | type[Any], Callable[[Any], Any]] = {
    Store: lambda store: (store.url, store.viewer)
}
"""How a cache hashes its arguments: each library, and each viewer of it, has its own entries."""


@dataclass(frozen=True)
class PageState(AgentPool):
    """The store, the agents by profile, and the runs in the background."""

    runs: BackgroundRuns = field(default_factory=BackgroundRuns)

    def workspace(self, profile: str | None = None) -> Workspace:
        """Return the store with the models of a profile."""
        loaded = load_profile(profile or self.profile, self.store.home.config)
        return Workspace(self.store.home, self.store, loaded, self.toolbox(loaded.name))


def page_state() -> PageState:
    """Return the application state, with what the user may see."""
    return _whole_state().for_user(user_in_grants())


def is_viewer() -> bool:
    """Check whether the user may only look and ask; also while nobody can tell."""
    name = user_in_grants()
    try:
        return name is not None and not _whole_state().for_user(name).store.may_change
    except HomerError:
        return True


@st.cache_resource(show_spinner="Opening the library ...")
def _whole_state() -> PageState:
    store = shared_store()
    return PageState(store, load_profile(None, store.home.config).name)
