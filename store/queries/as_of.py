"""What holds as of a clip, of all that has revisions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, or_


def holds(row: Any, clip: int | BindParameter[int]) -> ColumnElement[bool]:
    """Whether a row with ``from_clip`` and ``to_clip`` holds after ``clip`` was remembered."""
    return and_(row.from_clip <= clip, or_(row.to_clip.is_(None), row.to_clip > clip))
