"""The audit log: written in the transaction of the deed, and read."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.dialects.postgresql import insert as arriving
from sqlalchemy.orm import Session

from domain.audit import AuditEntry, Deed, acting
from domain.texts import storable
from store.tables.audit import AuditRow
from store.tables.schema import VideoRow

LONGEST = 200
"""Characters of a name that are kept."""


def actor() -> str:
    """For whom this is done, else the user of this process."""
    named = acting.get()
    if named is not None:
        return storable(named)[:LONGEST]
    try:
        return storable(getpass.getuser())[:LONGEST]
    except (KeyError, OSError):  # A container may run as a number that has no name.
        return f"user {os.getuid()}"


def keeps_log(session: Session) -> bool:
    """Whether the tables are of a revision that has the log."""
    return session.scalar(select(func.to_regclass(AuditRow.__tablename__))) is not None


def note(session: Session, deed: Deed, subject: str = "") -> None:
    """Write down a deed, which is on record if and only if the transaction is committed.

    Args:
        session: the deed's own transaction.
        deed: what is done.
        subject: the id of what it is done to; never content.
    """
    row = {"who": actor(), "deed": str(deed), "subject": subject}
    session.execute(insert(AuditRow).values(row))


def kept_lines(session: Session) -> list[dict[str, Any]]:
    """The log as it is, to put back where its table is made anew."""
    every = select(*AuditRow.__table__.columns)
    return [dict(row) for row in session.execute(every).mappings()]


def put_back(session: Session, lines: Sequence[dict[str, Any]]) -> None:
    """Adds those of these lines that are not there."""
    if lines:
        session.execute(arriving(AuditRow).on_conflict_do_nothing(), lines)


def entries(
    session: Session,
    *,
    deeds: tuple[Deed, ...] = (),
    who: str | None = None,
    subject: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> list[AuditEntry]:
    """What was done, the latest first; only by ``who``, to ids that begin with ``subject``."""
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
    found = session.execute(query.order_by(row.at.desc(), row.id).limit(limit))
    return [AuditEntry(at=at, who=by, deed=Deed(deed), subject=of) for at, by, deed, of in found]


def deleted_videos(session: Session) -> frozenset[str]:
    """The ids of the videos that were deleted whole, and that nobody added again since."""
    row = AuditRow
    gone = select(row.subject).where(row.deed == Deed.DELETED)
    return frozenset(session.scalars(gone.where(row.subject.not_in(select(VideoRow.id)))))


def now_of(session: Session) -> datetime:
    """The time that the deeds of this transaction bear."""
    return session.execute(select(func.now())).scalar_one()


def erased_since(session: Session, video: str, at: datetime) -> bool:
    """Whether something of a video was deleted, forgotten or retained no more after ``at``.

    One that was forgotten and brought back again does not count.
    """
    row = AuditRow
    query = select(row.deed).where(row.subject.startswith(video, autoescape=True), row.at > at)
    deeds = list(session.scalars(query))
    left = deeds.count(Deed.FORGOT) - deeds.count(Deed.BROUGHT_BACK)
    return left > 0 or bool({Deed.DELETED, Deed.RETAINED} & set(deeds))
