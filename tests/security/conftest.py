"""Libraries to attack: a full one, a back-up of it, and empty ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.backup import back_up
from store.database import Store, open_store
from store.home import Home
from tests.support.library import Quiet, fill_library


@pytest.fixture(scope="module")
def library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[tuple[Store, str]]:
    """A library and an answer of it; no test changes it."""
    with open_store(Home(tmp_path_factory.mktemp("library")), make_database()) as store:
        yield store, fill_library(store)


@pytest.fixture(scope="module")
def backup(library: tuple[Store, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("backup") / "library.homer"
    back_up(library[0], out, Quiet())
    return out


@pytest.fixture(scope="module")
def victim(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Store]:
    """An empty library that whatever is refused leaves empty."""
    with open_store(Home(tmp_path_factory.mktemp("victim")), make_database()) as store:
        yield store


@pytest.fixture
def empty(tmp_path: Path, make_database: Callable[[], str]) -> Iterator[Store]:
    with open_store(Home(tmp_path / "other"), make_database()) as store:
        yield store
