"""The tables of alerts: standing questions, clips that wait to be judged, and hits.

Hits hold no text: they refer to the line, face, segment or keyframe that shows them, so what is
deleted or forgotten there is gone from them too. Where hits are delivered is in the data
directory.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, added_at, reference, video_column


class AlertRow(Base):
    """A standing question. ``video_id``: the only video that it is about; NULL: all videos."""

    __tablename__ = "alerts"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    question: Mapped[str]
    video_id: Mapped[str | None] = video_column(index=True)
    threshold: Mapped[float]
    debounce_ms: Mapped[int] = mapped_column(BigInteger)
    delivery: Mapped[str | None] = mapped_column(comment="webhook, command; NULL: none")
    made_at: Mapped[datetime] = added_at()


class AlertClipRow(Base):
    """A clip that is in memory, or the segments written after it, that were not judged yet."""

    __tablename__ = "alert_clips"
    __table_args__ = (
        ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
    )
    video_id: Mapped[str] = mapped_column(primary_key=True)
    clip: Mapped[int] = mapped_column(primary_key=True)
    segments: Mapped[bool] = mapped_column(
        primary_key=True,
        server_default="false",
        comment="true: the segments that were written after the clip; false: the clip itself",
    )
    attempts: Mapped[int] = mapped_column(server_default="0")


class AlertHitRow(Base):
    """A clip that answered an alert. ``state``: recorded, waiting, delivered or failed."""

    __tablename__ = "alert_hits"
    __table_args__ = (
        ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        Index("alert_hits_of_clip", "video_id", "clip"),
        Index("alert_hits_waiting", "alert_id", postgresql_where=text("state = 'waiting'")),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    alert_id: Mapped[str] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    video_id: Mapped[str]
    clip: Mapped[int]
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    score: Mapped[float]
    memory_id: Mapped[int | None] = reference("memories.id", index=True)
    identity_id: Mapped[int | None] = reference("identities.id", index=True)
    segment_id: Mapped[int | None] = reference("segments.id", index=True)
    keyframe_id: Mapped[int | None] = reference("keyframes.id", index=True)
    state: Mapped[str]
    error: Mapped[str | None] = mapped_column(comment="why it was not delivered, without content")
    at: Mapped[datetime] = added_at()
