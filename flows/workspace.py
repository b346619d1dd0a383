"""What every command works with, opened together: the store, the profile and its models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf

from domain.errors import NotFound
from domain.settings import Pool, Settings
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import StoredTrajectory, find_trajectory

LOOKS_EVERY_S = 1.0
"""How often work that stands back looks whether it may go on."""


@dataclass(frozen=True)
class Workspace:
    """An open store and the models of a profile; a model is loaded when it is first used.

    ``background``: nobody waits for what is done here, so it stands back while somebody waits.
    """

    home: Home
    store: Store
    profile: Profile
    toolbox: Toolbox
    background: bool = False

    def give_way(self, wait: Callable[[float], None] = time.sleep, most_s: float = inf) -> float:
        """Called between two steps: what nobody waits for goes on once nobody else waits.

        Args:
            wait: lets so many seconds pass.
            most_s: seconds after which it goes on all the same.

        Returns:
            Seconds that it stood back.

        Raises:
            DatabaseError: the database is away.
        """
        if not self.background:
            self.store.turns.keep()
            return 0.0
        waited = 0.0
        with self.store.failures_told():
            while waited < most_s and self.store.turns.people():
                wait(LOOKS_EVERY_S)
                waited += LOOKS_EVERY_S
        return waited

    @contextmanager
    def turn(self) -> Iterator[None]:
        """In here somebody waits, unless nobody waits for what is done at this desk."""
        with nullcontext() if self.background else self.store.turns.person():
            yield

    @property
    def settings(self) -> Settings:
        """The paper's defaults with the profile's changes."""
        return self.profile.settings

    def staffed(self, workers: int | None = None, pool: Pool | None = None) -> Workspace:
        """The same, with other workers to perceive than those of the settings."""
        work = self.settings.work.changed(workers, pool)
        settings = self.settings.model_copy(update={"work": work})
        return replace(self, profile=self.profile.model_copy(update={"settings": settings}))


@contextmanager
def open_desk(
    profile: str | None = None, home: Home | None = None, *, background: bool = False
) -> Iterator[Workspace]:
    """Opens the data directory's store with the models of ``profile``.

    Args:
        profile: a name or a path; None is the environment's, else the configured one, else local.
        home: the data directory; None is the default one.
        background: nobody waits for what is done here.

    Raises:
        SetupError: the database cannot be opened.
        InputError: there is no such profile.
    """
    place = home or Home.default()
    chosen = load_profile(profile, place.config)
    with open_store(place) as store:
        yield Workspace(place, store, chosen, Toolbox(chosen, place.weights), background)


@contextmanager
def open_desk_of(
    name: str, profile: str | None = None
) -> Iterator[tuple[Workspace, StoredTrajectory]]:
    """Opens the desk with the models that the trajectory ``name`` was asked with.

    Args:
        name: the trajectory's id, or the beginning of it.
        profile: other models.

    Raises:
        NotFound: there is no such trajectory, or its profile is not known any more.
        Ambiguous: several trajectories begin with ``name``.
        SetupError: the database cannot be opened.
    """
    place = Home.default()
    with open_store(place) as store:
        with store.begin() as session:
            row = find_trajectory(session, name)
        chosen = _profile_of(row, profile, place)
        yield Workspace(place, store, chosen, Toolbox(chosen, place.weights)), row


def _profile_of(row: StoredTrajectory, profile: str | None, place: Home) -> Profile:
    try:
        return load_profile(profile or row.profile, place.config)
    except NotFound as error:
        if profile is not None:
            raise
        raise NotFound(
            f"trajectory {row.id} was asked with the profile {row.profile!r}, which is not known "
            "here: name it with --profile NAME or --profile FILE"
        ) from error
