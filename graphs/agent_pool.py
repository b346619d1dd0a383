"""What answers with each profile: made when it is first asked for, and shared from then on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox

if TYPE_CHECKING:
    from retrieval.retrievers import Retrievers
    from store.database import Store


@dataclass(frozen=True)
class AgentPool:
    """The models, searches and machines of a store, by profile. Thread-safe.

    ``profile`` is the configured one.
    """

    store: Store
    profile: str
    _toolboxes: dict[str, Toolbox] = field(default_factory=dict)
    _askers: dict[str, Runner] = field(default_factory=dict)
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
        from retrieval.retrievers import Retrievers

        name = profile or self.profile
        with self._lock:
            if name not in self._retrievers:
                toolbox = self.toolbox(name)
                settings = toolbox.profile.settings
                self._retrievers[name] = Retrievers(self.store, toolbox, settings)
            return self._retrievers[name]

    def asker(self, profile: str | None = None) -> Runner:
        """The machine with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._askers:
                self._askers[name] = Runner(self.store, self.toolbox(name))
            return self._askers[name]

    def close(self) -> None:
        """Give the machines' connections back."""
        with self._lock:
            for asker in self._askers.values():
                asker.close()
            self._askers.clear()
