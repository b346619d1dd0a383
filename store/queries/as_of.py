"""The condition for rows with revisions to be valid as of a clip."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, or_


def valid_at(row: Any, clip: int | BindParameter[int]) -> ColumnElement[bool]:
    """Return the condition that a revision (``from_clip``, ``to_clip``) is valid after ``clip``."""
    return and_(row.from_clip <= clip, or_(row.to_clip.is_(None), row.to_clip > clip))
