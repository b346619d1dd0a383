"""What every command works with, opened together: the store, the profile and its models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from domain.errors import NotFound
from domain.settings import Pool, Settings
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import StoredTrajectory, find_trajectory


@dataclass(frozen=True)
class Desk:
    """An open store and the models of a profile; a model is loaded when it is first used."""

    home: Home
    store: Store
    profile: Profile
    toolbox: Toolbox

    @property
    def settings(self) -> Settings:
        """The paper's defaults with the profile's changes."""
        return self.profile.settings

    def staffed(self, workers: int | None = None, pool: Pool | None = None) -> Desk:
        """The same, with other workers to perceive than those of the settings."""
        work = self.settings.work.changed(workers, pool)
        settings = self.settings.model_copy(update={"work": work})
        return replace(self, profile=self.profile.model_copy(update={"settings": settings}))


@contextmanager
def open_desk(profile: str | None = None, home: Home | None = None) -> Iterator[Desk]:
    """Opens the data directory's store with the models of ``profile``.

    Args:
        profile: a name or a path; None is the environment's, else the configured one, else local.
        home: the data directory; None is the default one.

    Raises:
        SetupError: the database cannot be opened.
        InputError: there is no such profile.
    """
    place = home or Home.default()
    chosen = load_profile(profile, place.config)
    with open_store(place) as store:
        yield Desk(place, store, chosen, Toolbox(chosen, place.weights))


@contextmanager
def open_desk_of(name: str, profile: str | None = None) -> Iterator[tuple[Desk, StoredTrajectory]]:
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
        yield Desk(place, store, chosen, Toolbox(chosen, place.weights)), row


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
