"""The workspace of commands and flows: the open store, the profile and its models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from domain.errors import NotFound
from domain.settings import ClipViewKind, Pool, Settings
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.encoders import check_encoder, encoders_of_library
from store.queries.trajectories import StoredTrajectory, find_trajectory

if TYPE_CHECKING:
    from graphs.context_factory import StrategyTools
    from retrieval.retrievers import Retrievers

GIVE_WAY_POLL_S = 1.0
"""How often waiting background work checks whether it may go on."""


@dataclass(frozen=True)
class Workspace:
    """An open store and the models of a profile; a model is loaded when it is first used.

    ``background``: nobody waits for this work, so it gives way to work that somebody waits for.
    """

    home: Home
    store: Store
    profile: Profile
    toolbox: Toolbox
    background: bool = False

    def give_way(self, wait: Callable[[float], None] = time.sleep, most_s: float = inf) -> float:
        """Wait between two steps of background work while other work has priority.

        Args:
            wait: sleeps for a number of seconds.
            most_s: seconds to wait at most.

        Returns:
            The seconds waited.

        Raises:
            DatabaseError: the database cannot be reached.
        """
        if not self.background:
            self.store.turns.keep()
            return 0.0
        waited = 0.0
        with self.store.explaining_failures():
            while waited < most_s and self.store.turns.people():
                wait(GIVE_WAY_POLL_S)
                waited += GIVE_WAY_POLL_S
        return waited

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Give the work in this block priority, unless this workspace is in the background."""
        with nullcontext() if self.background else self.store.turns.person():
            yield

    @cached_property
    def searching(self) -> Toolbox:
        """The models for searching and asking: with the encoders of the library."""
        with self.store.begin() as session:
            return self.toolbox.of_library(*encoders_of_library(session))

    def require_encoders(self) -> None:
        """Check, before anything is watched, that its vectors will be of the library's encoders.

        Those of no known profile are refused when something is stored.

        Raises:
            InputError: they would be of others.
        """
        with self.store.begin() as session:
            known = encoders_of_library(session)
            if self.toolbox.of_library(known.text, known.images) is not self.toolbox:
                check_encoder(session, self.profile.text_name)
                if self.profile.image_model:
                    check_encoder(session, self.profile.image_model, images=True)

    @cached_property
    def retrievers(self) -> Retrievers:
        """The four search modes over the store. Thread-safe."""
        from retrieval.retrievers import Retrievers  # Watching searches nothing.

        return Retrievers(self.store, self.searching, self.settings)

    @cached_property
    def tools(self) -> StrategyTools:
        """The tools of all strategies on the store. Thread-safe."""
        from graphs.context_factory import StrategyTools  # Watching uses none.

        return StrategyTools(self.store, self.searching)

    @property
    def settings(self) -> Settings:
        """Return the paper's defaults with the profile's changes."""
        return self.profile.settings

    def with_workers(self, workers: int | None = None, pool: Pool | None = None) -> Workspace:
        """Return a copy with other perception workers than those of the settings."""
        return self._with(work=self.settings.work.changed(workers, pool))

    def with_memory_of(self, strategies: tuple[str, ...]) -> Workspace:
        """Return a copy in which the memory of these strategies is built; none: as set."""
        memory = self.settings.memory.model_copy(update={"strategies": strategies})
        return self._with(memory=memory) if strategies else self

    def with_recording(self) -> Workspace:
        """Return a copy in which streams are recorded."""
        return self._with(stream=self.settings.stream.model_copy(update={"record": True}))

    def with_clip_view(self, clip_view: ClipViewKind | None = None) -> Workspace:
        """Return a copy in which a language model is shown this of each clip; None: as set."""
        memory = self.settings.memory.model_copy(update={"clip_view": clip_view})
        return self._with(memory=memory) if clip_view is not None else self

    def _with(self, **parts: object) -> Workspace:
        settings = self.settings.model_copy(update=parts)
        return replace(self, profile=self.profile.model_copy(update={"settings": settings}))


@contextmanager
def open_workspace(
    profile: str | None = None, home: Home | None = None, *, background: bool = False
) -> Iterator[Workspace]:
    """Open the data directory's store with the models of ``profile``.

    Args:
        profile: a name or a path; None is the environment's, else the configured one, else local.
        home: the data directory; None is the default one.
        background: whether the work gives way to work that somebody waits for.

    Raises:
        SetupError: the database cannot be opened.
        InputError: there is no such profile.
    """
    data_dir = home or Home.default()
    loaded = load_profile(profile, data_dir.config)
    with open_store(data_dir) as store:
        yield Workspace(data_dir, store, loaded, Toolbox(loaded, data_dir.weights), background)


def workspace_of(
    opened: Workspace | None, profile: str | None, home: Home
) -> AbstractContextManager[Workspace]:
    """Return ``opened``, whose models may be loaded, unless another profile is asked for."""
    if opened is not None and profile in (None, opened.profile.name):
        return nullcontext(opened)
    return open_workspace(profile, home)


@contextmanager
def open_trajectory_workspace(
    home: Home, name: str, profile: str | None = None
) -> Iterator[tuple[Workspace, StoredTrajectory]]:
    """Open the store with the models of a trajectory, or with those of ``profile``.

    Args:
        name: the trajectory's id, or the beginning of it.
        profile: models to use instead.

    Raises:
        NotFound: there is no such trajectory, or its profile is not known.
        Ambiguous: several trajectories begin with ``name``.
        SetupError: the database cannot be opened.
    """
    with open_store(home) as store:
        with store.begin() as session:
            row = find_trajectory(session, name)
        try:
            loaded = load_profile(profile or row.profile, home.config)
        except NotFound as error:
            if profile is not None:
                raise
            raise NotFound(
                f"trajectory {row.id} was asked with the profile {row.profile!r}, which is not "
                "known here: name it with --profile NAME or --profile FILE"
            ) from error
        yield Workspace(home, store, loaded, Toolbox(loaded, home.weights)), row
