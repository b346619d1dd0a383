"""Removal of files that no row names any more."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

from domain import faults
from store.database import Store
from store.queries.blobs import lock_blobs_exclusive, unused_blobs

_BATCH = 1000


def remove_unused_blobs(store: Store, shas: Iterable[str]) -> int:
    """Remove those of ``shas`` that no video uses now; return how many.

    Call it after the transaction that deleted their rows. A process killed in between leaves files
    without rows, which ``remove_orphaned_blobs`` removes.
    """
    removed = 0
    remaining = iter(shas)
    while batch := list(islice(remaining, _BATCH)):
        with store.begin() as session:
            lock_blobs_exclusive(session)
            for sha in unused_blobs(session, batch):
                store.blobs.delete(sha)
                removed += 1
                faults.fault_point(faults.FaultPoint.BLOB_REMOVED)
    return removed


def remove_orphaned_blobs(store: Store, older_s: float = 0) -> int:
    """Remove what killed writers left: blobs without a row, and partial files.

    Writers hold a shared lock until their rows are committed, and this waits for all of them.

    Args:
        store: The store.
        older_s: Spare files written within so many seconds, for writers without a lock.

    Returns:
        The number of files removed.
    """
    before = time.time() - older_s
    with store.begin() as session:
        lock_blobs_exclusive(session)
        parts = store.blobs.sweep_parts(before)
    return parts + remove_unused_blobs(
        store, [sha for sha, put in store.blobs.walk() if put <= before]
    )
