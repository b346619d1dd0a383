"""One cache of compiled SQL statements for all engines of a test run.

Each test has a database and an engine of its own, whose cache would start empty. The cache is keyed
by the dialect, so the engines share that as well.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

MOST = 3000


def share(patch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let the engines that these modules create share one cache of statements."""
    cache: LRUCache[Any, Any] = LRUCache(MOST)
    first: dict[type, Any] = {}

    def create(url: Any, **options: Any) -> Engine:
        engine = sqlalchemy.create_engine(url, **options)
        own = engine.dialect
        engine.dialect = first.get(type(own), own)
        # Before it was connected a dialect does not know its server.
        sqlalchemy.event.listen(engine, "connect", lambda *_: first.setdefault(type(own), own))
        engine.update_execution_options(compiled_cache=cache)
        return engine

    for module in modules:
        patch.setattr(f"{module}.create_engine", create)
