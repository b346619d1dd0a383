"""Libraries that several files of tests ask questions of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from cli.main import app
from models.toolbox import Toolbox
from store.database import Store
from tests.support.api import WordState, client_of
from tests.support.app_pages import app_over
from tests.support.asking import remember_party
from tests.support.library_templates import FilledLibraries
from tests.support.machine import watched
from tests.support.memdreamer_memory import write_house
from tests.support.memory import WordVectors
from tests.support.seeing_model import Eyes


@pytest.fixture
def party(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, remember_party)
    return store


@pytest.fixture
def house(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, write_house)
    return store


@pytest.fixture
def watched_store(store: Store) -> Store:
    watched(store)
    return store


@pytest.fixture
def client(library: Store) -> Iterator[TestClient]:
    with client_of(WordState(library, "local")) as found:
        yield found


@pytest.fixture(scope="module")
def eyes(toolbox: Toolbox) -> Eyes:
    return Eyes(toolbox.screen, toolbox.objects, toolbox.faces)


@pytest.fixture
def homer(talk: Store, database: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    class Box:
        def __init__(self, *_: object) -> None:
            self.text = WordVectors()

        def of_library(self, *_: object) -> Box:
            return self

    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    monkeypatch.setattr("flows.workspace.Toolbox", Box)

    def run(*arguments: str, answer: str = "") -> tuple[int, str, str]:
        done = CliRunner().invoke(app, list(arguments), input=answer)
        return done.exit_code, done.stdout, done.stderr

    return run


@pytest.fixture
def app_library(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the pages open, without models."""
    with app_over(store, monkeypatch):
        yield store
