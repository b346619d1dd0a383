"""The table of who did what, to which rows are only added."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, now


class AuditRow(Base):
    """One deed; ``subject`` is an id. No reference leads here or from here: it outlives both.

    The database refuses to change or delete rows. Their ids are random, so that those of two
    libraries can come together.
    """

    __tablename__ = "audit"
    __table_args__ = (Index("audit_by_time", "at"),)
    id: Mapped[str] = mapped_column(
        primary_key=True, server_default=text("(gen_random_uuid())::text")
    )
    at: Mapped[datetime] = now()
    who: Mapped[str]
    deed: Mapped[str]
    subject: Mapped[str]
