"""The tables of live streams: their sources, how each clip was watched, and the gaps."""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.base import Base, primary_key, video_column


class StreamRow(Base):
    """A video that is watched live; ``source`` holds no secret."""

    __tablename__ = "streams"
    video_id: Mapped[str] = video_column(primary_key=True)
    source: Mapped[str]
    began_ms: Mapped[int] = mapped_column(BigInteger, comment="Unix time of video time 0")


class StreamClipRow(Base):
    """How a clip of a stream was watched; counts are of frames."""

    __tablename__ = "stream_clips"
    __table_args__ = (
        ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
    )
    video_id: Mapped[str] = mapped_column(primary_key=True)
    clip: Mapped[int] = mapped_column(primary_key=True)
    level: Mapped[int]
    came: Mapped[int]
    damaged: Mapped[int]
    sampled: Mapped[int]
    lag_ms: Mapped[int | None] = mapped_column(BigInteger)
    recording: Mapped[str | None] = mapped_column(comment="the SHA-256 of an MP4")
    recording_ms: Mapped[int | None] = mapped_column(BigInteger, comment="video time of its start")


class StreamGapRow(Base):
    """A span of a stream that is not in memory, and why."""

    __tablename__ = "stream_gaps"
    __table_args__ = (Index("stream_gaps_of_video", "video_id", "start_ms"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    reason: Mapped[str]
    frames: Mapped[int]
