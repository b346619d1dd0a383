"""Which videos are being watched, as the database knows it: by processes of any machine.

A claim lasts as long as the connection of its process: no clock can be wrong about that. Where the
database is started anew while a video is watched the claim is gone, and the file's lock of the data
directory is left, which tells processes of one machine apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.rows import scalar_row
from sqlalchemy import text
from sqlalchemy.orm import Session

from store.database import Store
from store.locks import HASH, HELD

WATCHING = 7_202
"""The class of advisory locks that are claims on videos."""
GRACE_S = 3.0
"""How long a process that was just killed may still seem to watch."""
POLL_S = 0.05

_GIVE = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
_TRY = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_ALIVE = ("tcp_keepalives_idle", 30), ("tcp_keepalives_interval", 10), ("tcp_keepalives_count", 3)
"""In seconds and tries: after a minute a machine that is gone claims nothing any more."""


@contextmanager
def claim_video(store: Store, video: str, grace_s: float | None = None) -> Iterator[bool]:
    """Claims a video while in here; False where another process has it.

    Raises:
        DatabaseError: the database cannot be reached.
    """
    with store.failures_told():
        connection = psycopg.connect(store.psycopg_url, autocommit=True)
    try:
        with store.failures_told():
            taken = _take(connection, video, GRACE_S if grace_s is None else grace_s)
        yield taken
        if taken:
            # Closing is told to the server only, which comes to it a moment later.
            with suppress(psycopg.Error):
                connection.execute(_GIVE, (WATCHING, video))
    finally:
        connection.close()


def _take(connection: psycopg.Connection[Any], video: str, grace_s: float) -> bool:
    for name, value in _ALIVE:
        connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
    until = time.monotonic() + grace_s
    with connection.cursor(row_factory=scalar_row) as cursor:
        while not cursor.execute(_TRY, (WATCHING, video)).fetchone():
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
    return True


def claimed_videos(session: Session) -> frozenset[str]:
    """The ids of the videos that some process of some machine claims."""
    locked = f"SELECT CAST(objid AS bigint) FROM {HELD} AND classid = :class"  # noqa: S608
    query = f"SELECT id FROM videos WHERE {HASH.format('id')} IN ({locked})"  # noqa: S608
    return frozenset(session.execute(text(query), {"class": WATCHING}).scalars())
