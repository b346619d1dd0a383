"""Claims on videos: which are being watched, by processes of any machine.

A claim lasts as long as the connection of its process, independent of clocks. If the database is
restarted while a video is watched the claim is lost; the file lock in the data directory remains,
which works among the processes of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import scalar_row
from sqlalchemy import text
from sqlalchemy.orm import Session

from store.locks import HELD_LOCKS, KEY_HASH

if TYPE_CHECKING:
    from store.database import Store

CLAIM_CLASS = 7_202
"""The class of the advisory locks that claim videos."""
GRACE_S = 3.0
"""Seconds for which a process that was just killed may still hold its claim."""
POLL_S = 0.05

_RELEASE_CLAIM = "SELECT pg_advisory_unlock(%s, hashtext(%s))"
_TRY_CLAIM = "SELECT pg_try_advisory_lock(%s, hashtext(%s))"
_KEEPALIVE = (
    ("tcp_keepalives_idle", 30),
    ("tcp_keepalives_interval", 10),
    ("tcp_keepalives_count", 3),
)
"""In seconds and tries: the claims of an unreachable machine end after a minute."""


@contextmanager
def claim_video(store: Store, video: str, grace_s: float | None = None) -> Iterator[bool]:
    """Claim a video during the block; yield False if another process has it.

    Raises:
        DatabaseError: The database cannot be reached.
    """
    with store.explaining_failures():
        connection = psycopg.connect(store.psycopg_url, autocommit=True)
    try:
        with store.explaining_failures():
            claimed = _try_claim(connection, video, GRACE_S if grace_s is None else grace_s)
        yield claimed
        if claimed:
            # The server handles a closed connection only a moment later.
            with suppress(psycopg.Error):
                connection.execute(_RELEASE_CLAIM, (CLAIM_CLASS, video))
    finally:
        connection.close()


def _try_claim(connection: psycopg.Connection[Any], video: str, grace_s: float) -> bool:
    for name, value in _KEEPALIVE:
        connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
    deadline = time.monotonic() + grace_s
    with connection.cursor(row_factory=scalar_row) as cursor:
        while not cursor.execute(_TRY_CLAIM, (CLAIM_CLASS, video)).fetchone():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
    return True


def claimed_videos(session: Session) -> frozenset[str]:
    """Return the ids of the videos claimed by any process of any machine."""
    claimed = f"SELECT CAST(objid AS bigint) FROM {HELD_LOCKS} AND classid = :class"  # noqa: S608
    query = f"SELECT id FROM videos WHERE {KEY_HASH.format('id')} IN ({claimed})"  # noqa: S608
    return frozenset(session.execute(text(query), {"class": CLAIM_CLASS}).scalars())
