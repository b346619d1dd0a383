"""Libraries that are filled once in a run and copied for each test that begins with one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from store.database import Store, open_store
from store.driver import parse_url
from store.home import Home

T = TypeVar("T")
Fill = Callable[[Store], Any]


@dataclass(frozen=True)
class Filled:
    """A library that no test opens, and what filling it returned."""

    database: str
    home: Home
    value: Any


class FilledLibraries:
    """Filled libraries by the function that fills one.

    Args:
        folder: Where their data directories are made.
        make_database: Makes a fresh database and returns its url.
        replace_database: Makes the first database anew, as a copy of the second.
    """

    def __init__(
        self,
        folder: Path,
        make_database: Callable[[], str],
        replace_database: Callable[[str, str], None],
    ) -> None:
        self._folder, self._make_database = folder, make_database
        self._replace_database = replace_database
        self._filled: dict[Fill, Filled] = {}

    def fill(self, store: Store, fill: Callable[[Store], T]) -> T:
        """Make a store that nothing was written to what ``fill`` would make of it.

        Returns:
            What ``fill`` returned when it was called.
        """
        if fill not in self._filled:
            self._filled[fill] = self._make(fill)
        found = self._filled[fill]
        self._replace_database(str(parse_url(store.url).database), found.database)
        # The library's id came with the copy, and with it the folder of its blobs.
        store.__dict__.pop("blobs", None)
        shutil.copytree(found.home.root, store.home.root, dirs_exist_ok=True)
        value: T = found.value
        return value

    def _make(self, fill: Fill) -> Filled:
        home, url = Home(self._folder / str(len(self._filled))).make(), self._make_database()
        with open_store(home, url) as store:
            value = fill(store)
        return Filled(str(parse_url(url).database), home, value)
