"""Removes files that no row names any more."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

from domain import faults
from store.database import Store
from store.queries.blobs import claim_blobs, unused_blobs

_BATCH = 1000


def drop_blobs(store: Store, shas: Iterable[str]) -> int:
    """Removes those of ``shas`` that no video uses by now; returns how many.

    Call it after the transaction that deleted their rows. A process killed in between leaves
    files without rows, for `sweep_blobs`.
    """
    dropped = 0
    asked = iter(shas)
    while batch := list(islice(asked, _BATCH)):
        with store.begin() as session:
            claim_blobs(session)
            for sha in unused_blobs(session, batch):
                store.blobs.delete(sha)
                dropped += 1
                faults.fault_point(faults.FaultPoint.BLOB_REMOVED)
    return dropped


def sweep_blobs(store: Store, older_s: float = 0) -> int:
    """Removes what killed writers left: blobs without a row, and files half written.

    Whoever writes holds the blobs until its rows are committed, and this waits for all who do.

    Args:
        store: the store.
        older_s: spares files put within so many seconds, for writers that hold nothing.

    Returns:
        How many files were removed.
    """
    before = time.time() - older_s
    with store.begin() as session:
        claim_blobs(session)
        parts = store.blobs.sweep_parts(before)
    return parts + drop_blobs(store, [sha for sha, put in store.blobs.walk() if put <= before])
