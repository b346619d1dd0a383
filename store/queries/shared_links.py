"""Links to one answer or moment."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.links import SharedLink
from domain.marked import marked
from domain.texts import make_storable
from domain.time import TimeSpan
from store.tables.library import SharedLinkRow

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
    valid = row.id == make_storable(name), row.expires_at > func.now()
    found = session.scalar(select(row).where(*valid))
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
    """Remove a link by id."""
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
