"""An empty library to attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from store.database import Store, open_store
from store.home import Home


@pytest.fixture(scope="module")
def victim(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Store]:
    """An empty library that whatever is refused leaves empty."""
    with open_store(Home(tmp_path_factory.mktemp("victim")), make_database()) as store:
        yield store
