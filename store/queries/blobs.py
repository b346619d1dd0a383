"""Which blobs are in use.

Rows and files cannot be changed in one transaction. So whoever puts a blob and adds its row holds
a shared lock from before the one until the other commits, and whoever removes files holds it
alone: a file with a row is never removed. What a killed writer left without a row is swept later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from store.tables.schema import BlobRow, LibraryRow

_LOCK = 0x424C4F42


def library_of(session: Session) -> str:
    """The name of this database, which no other has."""
    return session.scalars(select(LibraryRow.id)).one()


def hold_blobs(session: Session) -> None:
    """No blob is removed until this transaction ends: call it before the first put."""
    session.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _LOCK})


def claim_blobs(session: Session) -> None:
    """Waits for all who hold blobs, then keeps others waiting until this transaction ends."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def unused_blobs(session: Session, shas: Iterable[str]) -> list[str]:
    """Those of ``shas`` that no video uses, sorted."""
    asked = set(shas)
    used = select(BlobRow.sha256).where(BlobRow.sha256.in_(asked))
    return sorted(asked - set(session.scalars(used)))


def blobs_in_use(session: Session) -> Iterator[str]:
    """Every blob that a video uses, sorted; read as they are asked for."""
    query = select(BlobRow.sha256).distinct().order_by(BlobRow.sha256)
    yield from session.scalars(query.execution_options(yield_per=1000))


def blobs_of(session: Session, video_id: str) -> dict[str, int]:
    """The blobs of a video by digest, with their sizes in bytes."""
    query = select(BlobRow.sha256, BlobRow.size).where(BlobRow.video_id == video_id)
    return {row.sha256: row.size for row in session.execute(query.order_by(BlobRow.sha256))}


def size_of_blobs(session: Session) -> int:
    """Bytes of all blobs that videos use, each counted once."""
    each = select(BlobRow.sha256, func.max(BlobRow.size).label("size")).group_by(BlobRow.sha256)
    return int(session.scalar(select(func.sum(each.subquery().c.size))) or 0)
