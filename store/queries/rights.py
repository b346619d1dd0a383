"""Grants, groups and whether rights are enforced, and the audit log of what was done."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, and_, delete, exists, func, insert, or_, select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.media import ClipState
from domain.rights import AuditEntry, Deed, Grant, Membership, SharedLink, acting_user
from domain.time import TimeSpan
from domain.words import make_storable, marked
from store.migrations import prepare_viewer_role, recording
from store.tables.library import (
    AuditRow,
    EnforcedRightsRow,
    GrantRow,
    GroupMemberRow,
    SharedLinkRow,
)
from store.tables.schema import ClipRow, VideoRow

if TYPE_CHECKING:
    from store.database import Store


def rights_enforced(session: Session) -> bool:
    """Check whether rights limit what users and keys see."""
    return bool(session.scalar(select(exists().select_from(EnforcedRightsRow))))


def enforce_rights(session: Session, enforced: bool) -> None:
    """Begin or stop to enforce rights.

    Raises:
        SetupError: the database user may not create the role of viewers.
    """
    if enforced:
        prepare_viewer_role(session.connection())
    session.execute(delete(EnforcedRightsRow))
    if enforced:
        session.execute(insert(EnforcedRightsRow))


def sees_everything(session: Session, name: str) -> bool:
    """Check whether a user or key sees and may change the whole library."""
    unlimited = and_(GrantRow.video_id.is_(None), GrantRow.folder.is_(None))
    groups = select(GroupMemberRow.group_name).where(GroupMemberRow.member == name)
    applies = or_(
        and_(~GrantRow.is_group, GrantRow.grantee == name),
        and_(GrantRow.is_group, GrantRow.grantee.in_(groups)),
    )
    return bool(session.scalar(select(exists().where(unlimited, applies))))


def store_for(store: Store, name: str | None) -> Store:
    """Return a store as a user or key sees it; None is the operator of this machine.

    Raises:
        DatabaseError: the database cannot be reached.
    """
    if name is None:
        return store
    with store.begin() as session:
        if not rights_enforced(session) or sees_everything(session, name):
            return store
    return store.for_viewer(name)


def list_grants(session: Session) -> list[Grant]:
    row = GrantRow
    query = select(row).order_by(row.is_group, row.grantee, row.folder, row.video_id)
    rows = session.scalars(query)
    return [
        Grant(grantee=r.grantee, is_group=r.is_group, video=r.video_id, folder=r.folder)
        for r in rows
    ]


def add_grant(session: Session, grant: Grant) -> bool:
    """Add a grant; return False if it is there already."""
    if session.scalar(select(exists().where(_is(grant)))):
        return False
    values = {"video_id": grant.video, "folder": grant.folder}
    row = insert(GrantRow).values(grantee=grant.grantee, is_group=grant.is_group, **values)
    session.execute(row)
    return True


def remove_grants(session: Session, grant: Grant) -> int:
    """Remove a grant; return how many rows there were."""
    removed = delete(GrantRow).where(_is(grant)).returning(GrantRow.id)
    return len(session.scalars(removed).all())


def _is(grant: Grant) -> ColumnElement[bool]:
    return and_(
        GrantRow.grantee == grant.grantee,
        GrantRow.is_group == grant.is_group,
        GrantRow.video_id.is_not_distinct_from(grant.video),
        GrantRow.folder.is_not_distinct_from(grant.folder),
    )


def list_members(session: Session) -> list[Membership]:
    row = GroupMemberRow
    query = select(row.group_name, row.member).order_by(row.group_name, row.member)
    return [Membership(group=group, member=member) for group, member in session.execute(query)]


def add_member(session: Session, group: str, member: str) -> None:
    """Add a user or key to a group, which is made if needed."""
    row = upsert(GroupMemberRow).values(group_name=group, member=member)
    session.execute(row.on_conflict_do_nothing())


def remove_member(session: Session, group: str, member: str) -> bool:
    """Remove a user or key from a group; return False if they are not in it."""
    row = GroupMemberRow
    query = delete(row).where(row.group_name == group, row.member == member)
    return bool(session.scalars(query.returning(row.member)).all())


def visible_to(session: Session, name: str) -> list[str]:
    """Return the ids of the videos that a user or key sees."""
    session.execute(text("SELECT set_config('homer.viewer', :name, true)"), {"name": name})
    return [*session.scalars(text("SELECT v FROM visible_videos() AS v ORDER BY v"))]


# Links to one answer or moment.

_LISTED = marked("'homer share list' lists the links")


def add_link(
    session: Session,
    days: int,
    *,
    trajectory: str | None = None,
    video: str | None = None,
    span: TimeSpan | None = None,
) -> SharedLink:
    """Add a link to an answer or to a moment, and remove those that have expired."""
    session.execute(delete(SharedLinkRow).where(SharedLinkRow.expires_at <= func.now()))
    values = {
        "id": secrets.token_hex(8),
        "trajectory_id": trajectory,
        "video_id": video,
        "start_ms": span.start_ms if span else None,
        "end_ms": span.end_ms if span else None,
        # Whole seconds, as in the address.
        "expires_at": func.date_trunc("second", func.now()) + timedelta(days=days),
    }
    row = session.scalars(insert(SharedLinkRow).values(values).returning(SharedLinkRow)).one()
    return _link(row)


def find_link(session: Session, name: str) -> SharedLink:
    """Return a link that has not expired.

    Raises:
        NotFound: there is none.
    """
    row = SharedLinkRow
    valid = and_(row.id == make_storable(name), row.expires_at > func.now())
    found = session.scalar(select(row).where(valid))
    if found is None:
        raise NotFound(f"there is no link {name!r}: {_LISTED}")
    return _link(found)


def list_links(session: Session, trajectory: str | None = None) -> Sequence[SharedLink]:
    """Return the links that have not expired, the latest first; those to an answer, if given."""
    row = SharedLinkRow
    query = select(row).where(row.expires_at > func.now())
    if trajectory is not None:
        query = query.where(row.trajectory_id == trajectory)
    return [_link(found) for found in session.scalars(query.order_by(row.made_at.desc(), row.id))]


def remove_link(session: Session, link: str) -> None:
    session.execute(delete(SharedLinkRow).where(SharedLinkRow.id == link))


def _link(row: SharedLinkRow) -> SharedLink:
    start, end = row.start_ms, row.end_ms
    return SharedLink(
        id=row.id,
        trajectory=row.trajectory_id,
        video=row.video_id,
        span=None if start is None or end is None else TimeSpan.of(start, end),
        made_at=row.made_at,
        expires_at=row.expires_at,
    )


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
    """Check whether a user, or retention, removed any content of a video after ``since``."""
    # Something forgotten and restored since does not count. It is decided outside of a viewer's
    # rights. Where the database hides the log, everything counts as removed; so does what was
    # imported, since the log of the library that it was exported from is not here.
    row = AuditRow
    query = select(row.deed).where(row.subject.startswith(video, autoescape=True), row.at > since)
    with recording(session):
        if session.scalar(text("SELECT row_security_active('audit')")):
            return True
        deeds = list(session.scalars(query))
    unrestored = deeds.count(Deed.FORGOT) - deeds.count(Deed.BROUGHT_BACK)
    return unrestored > 0 or bool({Deed.DELETED, Deed.RETAINED, Deed.IMPORTED} & set(deeds))


def erasures(session: Session, video: str) -> int:
    """Count what was removed of a video or brought back: another count is another memory."""
    # Times would not do: whoever waits for the lock of a video is recorded with an earlier time.
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
