"""Homer's servers as they run, in processes of their own, over a small library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from auth.signing_in import VARIABLE
from services.supervisor import AppServer
from store.database import open_store
from store.home import Home
from tests.support.asking import remember_party

ROOT = Path(__file__).parents[2]


def small_library(folder: Path, url: str) -> dict[str, str]:
    """The environment of a process that works on a small library in ``folder``."""
    home = Home(folder / "home").make()
    with open_store(home, url) as store:
        remember_party(store)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HOMER_")}
    output = {"HOMER_HOME": str(home.root), "HOMER_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
    return {**clean, **output}


@contextmanager
def homer_serve(env: Mapping[str, str], *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "cli", "serve", "--port", "0", *options]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            (address,) = re.findall(r"the API is at (\S+);", process.stdout.readline())
            yield address
        finally:
            process.kill()


@contextmanager
def homer_app(env: Mapping[str, str], password: str = "") -> Iterator[str]:
    """The address of the app, behind a password where there is one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        patch.delenv(VARIABLE, raising=False)
        if password:
            patch.setenv(VARIABLE, password)
        server = AppServer(Home.default(), 0)
        try:
            yield server.start()
        finally:
            server.stop()
