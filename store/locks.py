"""Advisory locks as Postgres lists them."""

from __future__ import annotations

HELD_LOCKS = """
pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""The ``FROM`` clause of held locks with two keys, in ``classid`` and ``objid``, of this database.

Locks with a single key have its halves in the same columns, and another ``objsubid``.
"""

KEY_HASH = "(CAST(hashtext({}) AS bigint) & 4294967295)"
"""The ``objid`` of a lock whose second key is ``hashtext`` of the expression put in."""
