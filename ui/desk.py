"""What the pages work with, opened once for all of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import streamlit as st

from graphs.asker import Asker
from graphs.background import Runs
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from ui.files import shared_store


@dataclass(frozen=True)
class PageDesk:
    """The store, the machines that answer by profile, and the runs that go on beside the pages.

    ``profile`` is the configured one.
    """

    store: Store
    profile: str
    runs: Runs = field(default_factory=Runs)
    _opened: dict[str, tuple[Toolbox, Asker]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def asker(self, profile: str | None = None) -> Asker:
        """The machine with the models of a profile; models are loaded when first needed.

        Raises:
            InputError: there is no such profile.
        """
        return self._of(profile)[1]

    def toolbox(self, profile: str | None = None) -> Toolbox:
        """The models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        return self._of(profile)[0]

    def _of(self, profile: str | None) -> tuple[Toolbox, Asker]:
        name = profile or self.profile
        with self._lock:
            if name not in self._opened:
                chosen = load_profile(name, self.store.home.config)
                toolbox = Toolbox(chosen, self.store.home.weights)
                self._opened[name] = (toolbox, Asker(self.store, toolbox))
            return self._opened[name]


@st.cache_resource(show_spinner="Opening the library ...")
def page_desk() -> PageDesk:
    """The desk of this process."""
    store = shared_store()
    return PageDesk(store, load_profile(None, store.home.config).name)
