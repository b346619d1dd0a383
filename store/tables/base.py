"""What all tables are made with: how Python's types map to Postgres, keys and references."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, DateTime, ForeignKey, Identity, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Maps Python types to Postgres ones for all tables."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        dict[str, Any]: JSONB,
        list[Any]: JSONB,
    }


def pk() -> Mapped[int]:
    """The number of a row."""
    return mapped_column(BigInteger, Identity(), primary_key=True)


def video(**kwargs: Any) -> Mapped[str]:
    """The video that a row is of."""
    return mapped_column(ForeignKey("videos.id", ondelete="CASCADE"), **kwargs)


def ref(target: str, **kwargs: Any) -> Mapped[Any]:
    """A reference that goes with what it points at."""
    return mapped_column(BigInteger, ForeignKey(target, ondelete="CASCADE"), **kwargs)


def now() -> Mapped[datetime]:
    """When a row was added."""
    return mapped_column(DateTime(timezone=True), server_default=func.now())
