"""The table of items that schedules have processed, so that none is processed twice."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, added_at


class TakenRow(Base):
    """A processed file or address; ``key`` is a digest, so that no name is stored.

    ``told`` says why it could not be watched; None: it was.
    """

    __tablename__ = "taken"
    key: Mapped[str] = mapped_column(primary_key=True)
    told: Mapped[str | None]
    taken_at: Mapped[datetime] = added_at()
