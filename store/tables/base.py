"""The base of all tables: mapping of Python types to Postgres, keys and references."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, DateTime, ForeignKey, Identity, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

MADE_BY = "text encoder that made the vector, if there is one"
"""The comment of columns that name an encoder."""


class Base(DeclarativeBase):
    """Base class of all tables; maps Python types to Postgres types."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        dict[str, Any]: JSONB,
        list[Any]: JSONB,
    }


def primary_key() -> Mapped[int]:
    """Return the primary key column: an identity."""
    return mapped_column(BigInteger, Identity(), primary_key=True)


def video_column(**kwargs: Any) -> Mapped[str]:
    """Return a foreign key column to the video of a row."""
    return mapped_column(ForeignKey("videos.id", ondelete="CASCADE"), **kwargs)


def reference(target: str, **kwargs: Any) -> Mapped[Any]:
    """Return a foreign key column; rows are deleted with what they refer to."""
    return mapped_column(BigInteger, ForeignKey(target, ondelete="CASCADE"), **kwargs)


def added_at() -> Mapped[datetime]:
    """Return a column with the time when a row was added."""
    return mapped_column(DateTime(timezone=True), server_default=func.now())
