"""Database urls: parsing, and what may be shown of them."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from domain.errors import DatabaseError

_DRIVERS = {"postgres", "postgresql", "postgresql+psycopg"}


def parse_url(text: str) -> URL:
    """Parse a user's url to one for psycopg 3.

    Raises:
        DatabaseError: It is not a Postgres url. The message does not repeat it, since it may hold a
            password.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in _DRIVERS or not url.database:
        raise DatabaseError(
            "HOMER_DATABASE_URL is not a Postgres url: write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    return url.set(drivername="postgresql+psycopg")


def libpq_url(url: URL) -> str:
    """Return the url for psycopg and other users of libpq, password included."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def describe_url(url: URL) -> str:
    """Describe the database for messages, without password and options."""
    hosts = url.query.get("host", url.host)
    host = hosts if isinstance(hosts, str) else ",".join(hosts or ("localhost",))
    port = f":{url.port}" if url.port else ""
    return f"database {url.database} on {host}{port}"
