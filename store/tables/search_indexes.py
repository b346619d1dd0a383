"""The table of indexes that searching worked out of videos, so that the next process need not."""

from __future__ import annotations

from sqlalchemy import LargeBinary, Table
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, video

WORKED_OUT = "worked_out"


def is_worked_out(table: Table) -> bool:
    """Whether back-ups and exports leave a table out: all in it can be worked out again."""
    return bool(table.info.get(WORKED_OUT))


class SearchIndexRow(Base):
    """One video's. ``key`` tells of which lines, ``through`` up to which clip.

    A trigger takes it away whenever the video gets another version, as by all that deletes or says
    anew what is remembered of it (``store.queries.forget.touch``).
    """

    __tablename__ = "search_indexes"
    __table_args__ = ({"info": {WORKED_OUT: True}},)
    video_id: Mapped[str] = video(primary_key=True)
    key: Mapped[str]
    through: Mapped[int]
    body: Mapped[bytes] = mapped_column(LargeBinary)
