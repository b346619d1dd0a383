"""What the pages work with, opened once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import streamlit as st

from graphs.asker import Asker
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from ui.files import shared_store


@dataclass(frozen=True)
class PageDesk:
    """The store, and the machine that answers with the configured profile."""

    store: Store
    asker: Asker
    profile: str


@st.cache_resource(show_spinner="Opening the library ...")
def page_desk() -> PageDesk:
    """The desk of this process; models are loaded when a question first needs them."""
    store = shared_store()
    profile = load_profile(None, store.home.config)
    asker = Asker(store, Toolbox(profile, store.home.weights))
    return PageDesk(store, asker, profile.name)


def video_url(video: str) -> str | None:
    """Where the browser finds a video's file; None where it does not say where the app is."""
    app = urlsplit(str(st.context.url or ""))
    return f"{app.scheme}://{app.netloc}/video/{video}" if app.netloc else None
