"""The agent pool: runners, models and retrievers by profile, created once and shared."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphs.context_factory import StrategyTools
from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers

if TYPE_CHECKING:
    from store.database import Store


@dataclass(frozen=True)
class AgentPool:
    """The models, retrievers and runners of a store, by profile. Thread-safe.

    ``profile`` is the configured profile.
    """

    store: Store
    profile: str
    _toolboxes: dict[str, Toolbox] = field(default_factory=dict)
    _runners: dict[str, Runner] = field(default_factory=dict)
    _retrievers: dict[str, Retrievers] = field(default_factory=dict)
    _tools: dict[str, StrategyTools] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def toolbox(self, profile: str | None = None) -> Toolbox:
        """Return the models of a profile; each is loaded when first used.

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
        """Return the retrievers with the models of a profile; indexes are cached.

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

    def tools(self, profile: str | None = None) -> StrategyTools:
        """Return the tools of strategies with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._tools:
                self._tools[name] = StrategyTools(self.store, self.toolbox(name))
            return self._tools[name]

    def runner(self, profile: str | None = None) -> Runner:
        """Return the runner with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        name = profile or self.profile
        with self._lock:
            if name not in self._runners:
                self._runners[name] = Runner(self.store, self.toolbox(name))
            return self._runners[name]

    def close(self) -> None:
        """Close the runners' connections."""
        with self._lock:
            for runner in self._runners.values():
                runner.close()
            self._runners.clear()
