"""Which blobs are in use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from domain.time import TimeSpan
from store.advisory_locks import BLOBS, lock_until_commit
from store.queries.percepts import add_blobs
from store.tables.schema import (
    BlobRow,
    ClipRow,
    FrameRow,
    KeyframeRow,
    LibraryRow,
    SightingRow,
    StreamClipRow,
)


def own_library_id(session: Session) -> str:
    """Return the id of this library, which is unique."""
    return session.scalars(select(LibraryRow.id)).one()


# Rows and files cannot change in one transaction. So a writer holds a shared lock from before it
# puts a blob until its row is committed, and whoever removes files holds the lock exclusively: a
# file with a row is never removed. Files that a killed writer left without a row are swept later.
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


def delete_unnamed_blob_rows(
    session: Session, video_id: str, shas: Collection[str] | None = None
) -> list[str]:
    """Delete the video's blobs, of ``shas`` if given, that none of its rows names.

    Return those that no video uses any more.
    """
    named = (
        select(blob).where(blob.class_.video_id == video_id, blob == BlobRow.sha256).exists()
        for blob in (KeyframeRow.blob, SightingRow.blob, FrameRow.blob, StreamClipRow.recording)
    )
    deleted = delete(BlobRow).where(BlobRow.video_id == video_id, *(~one for one in named))
    if shas is not None:
        deleted = deleted.where(BlobRow.sha256.in_(shas))
    return unused_blobs(session, list(session.scalars(deleted.returning(BlobRow.sha256))))


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


# Recordings of the clips of streams: MP4 files among the blobs.


class StoredRecording(NamedTuple):
    """The recording of a clip: ``blob`` is the SHA-256 of its MP4.

    It begins at ``start_ms`` of video time, at a key picture, and ends with the clip, whose span is
    ``span``.
    """

    clip: int
    span: TimeSpan
    start_ms: int
    blob: str


def add_recording(
    session: Session, video_id: str, clip: int, blob: str, size: int, start_ms: int
) -> None:
    """Add the recording of a clip. Its file must be stored already, under ``lock_blobs_shared``."""
    row = StreamClipRow
    add_blobs(session, video_id, {blob: size})
    recorded = {"recording": blob, "recording_ms": start_ms}
    session.execute(update(row).where(row.video_id == video_id, row.clip == clip).values(recorded))


def recordings_in(session: Session, video_id: str, span: TimeSpan) -> list[StoredRecording]:
    """Return the recordings of the clips that overlap a span, in order."""
    row, clip = StreamClipRow, ClipRow
    query = select(row.clip, clip.start_ms, clip.end_ms, row.recording_ms, row.recording)
    query = query.join(clip, and_(clip.video_id == row.video_id, clip.clip == row.clip))
    overlaps = and_(clip.start_ms < span.end_ms, clip.end_ms > span.start_ms)
    query = query.where(row.video_id == video_id, row.recording.is_not(None), overlaps)
    found = session.execute(query.order_by(row.clip))
    return [
        StoredRecording(number, TimeSpan.of(begin, end), start or 0, blob or "")
        for number, begin, end, start, blob in found
    ]


def size_of_recordings(session: Session, video_id: str) -> int:
    row, blob = StreamClipRow, BlobRow
    query = select(func.coalesce(func.sum(blob.size), 0)).select_from(row)
    query = query.join(blob, and_(blob.video_id == row.video_id, blob.sha256 == row.recording))
    return int(session.scalar(query.where(row.video_id == video_id)) or 0)


def drop_recordings(session: Session, video_id: str) -> None:
    _drop(session, StreamClipRow.video_id == video_id)


def drop_recordings_of(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Remove all recordings that show any of these clips from the rows of a video.

    Those are their own, those beside them, and later ones that begin with a key picture of theirs.
    """
    row, clip = StreamClipRow, ClipRow
    beside = {number + step for number in clips for step in (-1, 0, 1)}
    end_ms = select(func.max(clip.end_ms)).where(clip.video_id == video_id, clip.clip.in_(clips))
    later = and_(row.clip > min(clips), row.recording_ms < end_ms.scalar_subquery())
    _drop(session, and_(row.video_id == video_id, or_(row.clip.in_(beside), later)))


def _drop(session: Session, where: ColumnElement[bool]) -> None:
    session.execute(update(StreamClipRow).where(where).values(recording=None, recording_ms=None))
