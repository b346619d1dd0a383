"""The audit log: written in the transaction of the recorded action, and read."""

from __future__ import annotations

import getpass
import os
from datetime import datetime

from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from domain.media import ClipState
from domain.rights import AuditEntry, Deed, acting_user
from domain.texts import make_storable
from store.migrations import recording
from store.tables.library import AuditRow
from store.tables.schema import ClipRow, VideoRow

MAX_NAME_LENGTH = 200
"""Maximum length of a stored name."""


def acting_name() -> str:
    """Return the acting user, or else the user of this process."""
    user = acting_user.get()
    if user is not None:
        return make_storable(user)[:MAX_NAME_LENGTH]
    try:
        return make_storable(getpass.getuser())[:MAX_NAME_LENGTH]
    except (KeyError, OSError):  # A container may run as a user id without a name.
        return f"user {os.getuid()}"


def record_deed(session: Session, deed: Deed, subject: str = "") -> None:
    """Record an action, if and only if the transaction is committed.

    Args:
        session: The action's own transaction.
        subject: The id of what it is done to; never content.
    """
    row = {"who": acting_name(), "deed": str(deed), "subject": subject}
    with recording(session):
        session.execute(insert(AuditRow).values(row))


def audit_entries(
    session: Session,
    *,
    deeds: tuple[Deed, ...] = (),
    who: str | None = None,
    subject: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> list[AuditEntry]:
    """Return recorded actions, latest first.

    Only those of ``deeds``, by ``who``, since ``since``, on ids that begin with ``subject``.
    """
    row = AuditRow
    query = select(row.at, row.who, row.deed, row.subject)
    if deeds:
        query = query.where(row.deed.in_(deeds))
    if who is not None:
        query = query.where(row.who == who)
    if subject is not None:
        query = query.where(row.subject.startswith(subject, autoescape=True))
    if since is not None:
        query = query.where(row.at >= since)
    rows = session.execute(query.order_by(row.at.desc(), row.id).limit(limit))
    return [
        AuditEntry(at=at, who=actor_name, deed=Deed(deed), subject=subject_id)
        for at, actor_name, deed, subject_id in rows
    ]


def deleted_videos(session: Session) -> frozenset[str]:
    """Return the ids of videos that were deleted completely and not added again since."""
    row = AuditRow
    deleted = select(row.subject).where(row.deed == Deed.DELETED)
    return frozenset(session.scalars(deleted.where(row.subject.not_in(select(VideoRow.id)))))


def transaction_time(session: Session) -> datetime:
    """Return the time stamp of the actions in this transaction."""
    return session.execute(select(func.now())).scalar_one()


def erased_since(session: Session, video: str, since: datetime) -> bool:
    """Check whether any content of a video was removed after ``since``: by a user or by retention.

    Something forgotten and restored since does not count. It is decided outside of a viewer's
    rights. Where the database hides the log, everything counts as removed; so does what was
    imported, since the log of the library that it was exported from is not here.
    """
    row = AuditRow
    query = select(row.deed).where(row.subject.startswith(video, autoescape=True), row.at > since)
    with recording(session):
        if session.scalar(text("SELECT row_security_active('audit')")):
            return True
        deeds = list(session.scalars(query))
    unrestored = deeds.count(Deed.FORGOT) - deeds.count(Deed.BROUGHT_BACK)
    return unrestored > 0 or bool({Deed.DELETED, Deed.RETAINED, Deed.IMPORTED} & set(deeds))


def erasures(session: Session, video: str) -> int:
    """Count what was removed of a video, or brought back, so far: another count is another memory.

    Times would not do: whoever waits for the lock of a video is recorded with an earlier time.
    """
    row, changing = AuditRow, (Deed.DELETED, Deed.FORGOT, Deed.RETAINED, Deed.BROUGHT_BACK)
    of_video = select(func.count()).where(row.subject.startswith(video, autoescape=True))
    return session.scalar(of_video.where(row.deed.in_(changing))) or 0


def is_erased(session: Session, video: str) -> bool:
    """Check whether a video is gone, or any of its content was removed: its file may still show it.

    What is made from the file is stored only in a transaction that holds the lock of the video
    (``lock_video``) and asks this again.
    """
    added_at = session.scalar(select(VideoRow.created_at).where(VideoRow.id == video))
    deleted = select(ClipRow.clip).where(
        ClipRow.video_id == video, ClipRow.state == ClipState.DELETED
    )
    return (
        added_at is None
        or erased_since(session, video, added_at)
        or session.scalar(deleted.limit(1)) is not None
    )
