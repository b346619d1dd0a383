"""Searches of the library that are saved under a name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store.tables.library import SavedSearchRow


def list_searches(session: Session) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the query of each, by name."""
    row = SavedSearchRow
    found = session.execute(select(row.name, row.query).order_by(row.name))
    return [(name, query) for name, query in found]


def put_search(session: Session, name: str, query: dict[str, Any]) -> None:
    """Save a search; one of the same name is replaced."""
    new = insert(SavedSearchRow).values(name=name, query=query)
    session.execute(new.on_conflict_do_update(index_elements=["name"], set_={"query": query}))


def delete_search(session: Session, name: str) -> None:
    """Delete a search."""
    session.execute(delete(SavedSearchRow).where(SavedSearchRow.name == name))
