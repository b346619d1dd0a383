"""The agent pool: runners, models and workspaces by profile, created once and shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeVar

from flows.workspace import Workspace
from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.queries.encoders import LibraryEncoders, encoders_of_library
from store.queries.rights import store_for

if TYPE_CHECKING:
    from store.database import Store


T = TypeVar("T")
Made = tuple[str, LibraryEncoders]
"""A profile, and the encoders of the library for which something was made of it."""


@dataclass(frozen=True)
class AgentPool:
    """The models, workspaces and runners of a store, by profile. Thread-safe.

    ``profile`` is the configured profile.
    """

    store: Store
    profile: str
    _toolboxes: dict[Made, Toolbox] = field(default_factory=dict)
    _runners: dict[Made, Runner] = field(default_factory=dict)
    _workspaces: dict[Made, Workspace] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    whole: AgentPool | None = None
    """The pool of the whole library, if this is a viewer's."""

    def for_user(self, name: str | None) -> Self:
        """Return this pool, or one that shows only what a user or key may see.

        Models and connections are shared. None is the operator of this machine.

        Raises:
            DatabaseError: the database cannot be reached.
        """
        store = store_for(self.store, name)
        if store is self.store:
            return self
        return replace(self, store=store, whole=self.whole or self, _runners={}, _workspaces={})

    def toolbox(self, profile: str | None = None) -> Toolbox:
        """Return the models of a profile; each is loaded when first used.

        Raises:
            InputError: there is no such profile.
        """
        home = self.store.home
        return self._once(
            self._toolboxes,
            profile,
            lambda name, encoders: Toolbox(
                load_profile(name, home.config), home.weights
            ).of_library(encoders.text, encoders.images),
        )

    def workspace(self, profile: str | None = None) -> Workspace:
        """Return the store with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        toolbox = self.toolbox(profile)
        return self._once(
            self._workspaces,
            profile,
            lambda *_: Workspace(self.store.home, self.store, toolbox.profile, toolbox),
        )

    def runner(self, profile: str | None = None) -> Runner:
        """Return the runner with the models of a profile.

        Raises:
            InputError: there is no such profile.
        """
        whole = self.whole
        return self._once(
            self._runners,
            profile,
            lambda name, _: (
                Runner(self.store, self.toolbox(name))
                if whole is None
                else whole.runner(name).for_store(self.store)
            ),
        )

    def _once(
        self, made: dict[Made, T], profile: str | None, make: Callable[[str, LibraryEncoders], T]
    ) -> T:
        """Return what was made for a profile; make it if it is the first time."""
        name = profile or self.profile
        with self.store.begin() as session:
            encoders = encoders_of_library(session)
        # The library may be changed to other encoders while the app is open.
        key = (name, encoders)
        with self._lock:
            if key not in made:
                made[key] = make(name, encoders)
            return made[key]

    def close(self) -> None:
        with self._lock:
            for runner in self._runners.values():
                runner.close()
            self._runners.clear()
