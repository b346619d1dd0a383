"""What the pages work with, opened once for all of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import streamlit as st

from graphs.asker import Asker
from graphs.background import Runs
from memory.retrieval.retrievers import Retrievers
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
    _toolboxes: dict[str, Toolbox] = field(default_factory=dict)
    _askers: dict[str, Asker] = field(default_factory=dict)
    _retrievers: dict[str, Retrievers] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def toolbox(self, profile: str | None = None) -> Toolbox:
        """The models of a profile; each is loaded when it is first used.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._toolboxes:
                chosen = load_profile(name, self.store.home.config)
                self._toolboxes[name] = Toolbox(chosen, self.store.home.weights)
            return self._toolboxes[name]

    def retrievers(self, profile: str | None = None) -> Retrievers:
        """What searches the memory with the models of a profile; indexes are kept.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._retrievers:
                toolbox = self.toolbox(name)
                settings = toolbox.profile.settings
                self._retrievers[name] = Retrievers(self.store, toolbox, settings)
            return self._retrievers[name]

    def asker(self, profile: str | None = None) -> Asker:
        """The machine with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._askers:
                self._askers[name] = Asker(self.store, self.toolbox(name))
            return self._askers[name]


@st.cache_resource(show_spinner="Opening the library ...")
def page_desk() -> PageDesk:
    """The desk of this process."""
    store = shared_store()
    return PageDesk(store, load_profile(None, store.home.config).name)
