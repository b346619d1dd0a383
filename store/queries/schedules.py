"""Items that schedules have processed, by digest."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store.tables.schema import TakenRow


class FailedItem(NamedTuple):
    """An item that could not be watched, and why."""

    failed_at: datetime
    error: str


def processed_items(session: Session, keys: Collection[str]) -> set[str]:
    """Return those of ``keys`` that were processed."""
    return set(session.scalars(select(TakenRow.key).where(TakenRow.key.in_(keys))))


def record_processed(session: Session, key: str, error: str | None = None) -> None:
    """Record that an item was processed; ``error`` says why it could not be watched."""
    row = insert(TakenRow).values(key=key, told=error)
    session.execute(row.on_conflict_do_update(index_elements=[TakenRow.key], set_={"told": error}))


def failed_items(session: Session, limit: int) -> list[FailedItem]:
    """Return the items that could not be watched, latest first."""
    row = TakenRow
    query = (
        select(row.taken_at, row.told)
        .where(row.told.is_not(None))
        .order_by(row.taken_at.desc(), row.key)
    )
    return [
        FailedItem(failed_at, error or "")
        for failed_at, error in session.execute(query.limit(limit))
    ]
