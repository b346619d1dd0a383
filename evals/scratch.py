"""A library of its own for an evaluation, thrown away afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.workspace import Workspace
from models.profile import Profile
from models.toolbox import Toolbox
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import migrate


@contextmanager
def scratch_desk(profile: Profile, home: Home) -> Iterator[Workspace]:
    """An empty library with the models of ``profile``, whose weights are those of ``home``."""
    with tempfile.TemporaryDirectory(prefix="homer-eval-") as folder:
        place = Home(Path(folder)).make()
        server = EmbeddedPostgres(place, fsync=False)
        try:
            url = server.start()
            migrate(url)
            with open_store(place, url) as store:
                yield Workspace(place, store, profile, Toolbox(profile, home.weights))
        finally:
            server.stop(fast=False)
