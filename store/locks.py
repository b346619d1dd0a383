"""Advisory locks as Postgres tells of them."""

from __future__ import annotations

HELD = """
pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""What a query reads ``FROM``: the locks of two keys, in ``classid`` and ``objid``, of a database.

One of a single key has its halves in the same columns, and another ``objsubid``.
"""

HASH = "(CAST(hashtext({}) AS bigint) & 4294967295)"
"""The second key, as ``objid`` has it, of a lock whose second key is ``hashtext`` of something."""
