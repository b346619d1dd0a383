"""Database urls: what users write, and what may be shown of them."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from domain.errors import DatabaseError

_OURS = {"postgres", "postgresql", "postgresql+psycopg"}


def parse_url(text: str) -> URL:
    """A url for psycopg 3 from what a user wrote.

    Raises:
        DatabaseError: it is not a Postgres url. The message does not repeat it: it may hold a
            password.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in _OURS or not url.database:
        raise DatabaseError(
            "HOMER_DATABASE_URL is not a Postgres url: write postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    return url.set(drivername="postgresql+psycopg")


def libpq_url(url: URL) -> str:
    """The same database for psycopg and other users of libpq, password included."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def shown(url: URL) -> str:
    """The url for messages: neither password nor options."""
    hosts = url.query.get("host", url.host)
    host = hosts if isinstance(hosts, str) else ",".join(hosts or ("localhost",))
    port = f":{url.port}" if url.port else ""
    return f"database {url.database} on {host}{port}"
