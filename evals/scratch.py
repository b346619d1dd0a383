"""A temporary library for an evaluation."""

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
def scratch_workspace(profile: Profile, home: Home) -> Iterator[Workspace]:
    """Open an empty library with the models of ``profile`` and the weights of ``home``."""
    with tempfile.TemporaryDirectory(prefix="homer-eval-") as folder:
        scratch_home = Home(Path(folder)).make()
        server = EmbeddedPostgres(scratch_home, fsync=False)
        try:
            url = server.start()
            migrate(url)
            with open_store(scratch_home, url) as store:
                yield Workspace(scratch_home, store, profile, Toolbox(profile, home.weights))
        finally:
            server.stop(fast=False)
