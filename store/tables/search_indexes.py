"""The table of search indexes computed from videos, so that the next process need not."""

from __future__ import annotations

from sqlalchemy import LargeBinary, Table
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, video_column

COMPUTED = "worked_out"


def is_computed(table: Table) -> bool:
    """Check whether back-ups and exports leave a table out, since it can be computed again."""
    return bool(table.info.get(COMPUTED))


class SearchIndexRow(Base):
    """One video's index. ``key`` is the state of its lines, ``through`` the last clip.

    A trigger deletes it whenever the video gets another version, as with every deletion and
    rewriting (``store.queries.forget.mark_rewritten``).
    """

    __tablename__ = "search_indexes"
    __table_args__ = ({"info": {COMPUTED: True}},)
    video_id: Mapped[str] = video_column(primary_key=True)
    key: Mapped[str]
    through: Mapped[int]
    body: Mapped[bytes] = mapped_column(LargeBinary)
