"""Which blobs are in use.

Rows and files cannot change in one transaction. So a writer holds a shared lock from before it puts
a blob until its row is committed, and whoever removes files holds the lock exclusively: a file with
a row is never removed. Files that a killed writer left without a row are swept later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from store.advisory_locks import BLOBS, lock_until_commit
from store.tables.schema import BlobRow, LibraryRow


def own_library_id(session: Session) -> str:
    """Return the id of this library, which is unique."""
    return session.scalars(select(LibraryRow.id)).one()


def lock_blobs_shared(session: Session) -> None:
    """Lock blobs against removal until this transaction ends; call it before the first put."""
    lock_until_commit(session, BLOBS, shared=True)


def lock_blobs_exclusive(session: Session) -> None:
    """Wait for all holders of blobs, and block others until this transaction ends."""
    lock_until_commit(session, BLOBS)


def unused_blobs(session: Session, shas: Iterable[str]) -> list[str]:
    """Return those of ``shas`` that no video uses, sorted."""
    candidates = set(shas)
    used = select(BlobRow.sha256).where(BlobRow.sha256.in_(candidates))
    return sorted(candidates - set(session.scalars(used)))


def blobs_in_use(session: Session) -> Iterator[str]:
    """Yield every blob that a video uses, sorted; fetched in batches."""
    query = select(BlobRow.sha256).distinct().order_by(BlobRow.sha256)
    yield from session.scalars(query.execution_options(yield_per=1000))


def blobs_of(session: Session, video_id: str) -> dict[str, int]:
    """Return the blobs of a video by digest, with their sizes in bytes."""
    query = select(BlobRow.sha256, BlobRow.size).where(BlobRow.video_id == video_id)
    return {row.sha256: row.size for row in session.execute(query.order_by(BlobRow.sha256))}


def blob_bytes(session: Session) -> int:
    """Return the bytes of all blobs that videos use, each counted once."""
    sizes = select(BlobRow.sha256, func.max(BlobRow.size).label("size")).group_by(BlobRow.sha256)
    return int(session.scalar(select(func.sum(sizes.subquery().c.size))) or 0)
