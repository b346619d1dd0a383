"""What every command works with, opened together: the store, the profile and its models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.settings import Settings
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home


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
