"""What the pages work with, opened once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from graphs.agent_pool import AgentPool
from graphs.background import BackgroundRuns
from models.profile import load_profile
from ui.files import shared_store


@dataclass(frozen=True)
class PageState(AgentPool):
    """The store, the machines that answer by profile, and the runs that go on beside the pages."""

    runs: BackgroundRuns = field(default_factory=BackgroundRuns)


@st.cache_resource(show_spinner="Opening the library ...")
def page_desk() -> PageState:
    """The desk of this process."""
    store = shared_store()
    return PageState(store, load_profile(None, store.home.config).name)
