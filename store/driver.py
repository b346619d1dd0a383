"""The driver under SQLAlchemy, for what only psycopg can do."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import Connection


def is_lost(connection: Connection) -> bool:
    """Whether there is no connection any more, also where SQLAlchemy does not know it yet."""
    return connection.invalidated or bool(driver_of(connection).closed)


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Psycopg's own connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine's only driver
    return driver
