"""Access to psycopg, the driver under SQLAlchemy."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import Connection


def is_lost(connection: Connection) -> bool:
    """Check whether the connection is lost, even if SQLAlchemy has not noticed yet."""
    return connection.invalidated or bool(driver_of(connection).closed)


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Return psycopg's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine's only driver
    return driver
