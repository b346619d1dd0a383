"""The driver under SQLAlchemy, for what only psycopg can do."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import Connection


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Psycopg's own connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the engine's only driver
    return driver
