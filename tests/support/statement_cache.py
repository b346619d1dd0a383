"""Statements are compiled once a run, and not anew by each test's engine.

Each test has a database of its own on the same server, and so an engine of its own, whose cache of
compiled statements is empty. All engines of a run share one cache here, and the dialect by which it
is kept.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

MOST = 3000


def share(patch: pytest.MonkeyPatch, *modules: str) -> None:
    """The engines that these modules make share what they compile."""
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
