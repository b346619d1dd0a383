"""The tables of videos and of their clips."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.library import Base, added_at, primary_key, video_column


class VideoRow(Base):
    """A source. ``state``: watching, done or failed."""

    __tablename__ = "videos"
    id: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    path: Mapped[str | None]
    duration_ms: Mapped[int] = mapped_column(BigInteger)
    width: Mapped[int]
    height: Mapped[int]
    has_video: Mapped[bool]
    has_audio: Mapped[bool]
    profile: Mapped[str]
    subtitles: Mapped[list[Any] | None] = mapped_column(
        JSONB(none_as_null=True), comment="subtitles and chapters that were used; NULL: ignored"
    )
    audio_track: Mapped[int | None] = mapped_column(
        comment="number of the track of sound that is heard; NULL: the only one"
    )
    remarks: Mapped[list[Any]] = mapped_column(
        JSONB, server_default="[]", comment="what of the file is not watched, or is odd"
    )
    state: Mapped[str]
    error: Mapped[str | None]
    models: Mapped[dict[str, Any]] = mapped_column(JSONB, comment="port -> model name")
    characters: Mapped[int] = mapped_column(
        server_default="0", comment="how many were met; numbers below it are not given again"
    )
    created_at: Mapped[datetime] = added_at()


UNFINISHED = "clips.state NOT IN ('done', 'deleted')"
"""The condition of the index of clips that are not finished, which are few."""


class ClipRow(Base):
    """A clip. ``text`` and ``embedding`` sum up its memories; ``seconds``: time spent so far."""

    __tablename__ = "clips"
    __table_args__ = (
        Index("unfinished_clips", "video_id", "clip", postgresql_where=text(UNFINISHED)),
    )
    video_id: Mapped[str] = video_column(primary_key=True)
    clip: Mapped[int] = mapped_column(primary_key=True)
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str]
    error: Mapped[str | None]
    attempts: Mapped[int]
    unwritten: Mapped[bool] = mapped_column(
        server_default="false", comment="its lines are local, until a model writes it"
    )
    gaps: Mapped[list[Any]] = mapped_column(JSONB, comment="[[start_ms, end_ms, reason], ...]")
    text: Mapped[str]
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    seconds: Mapped[float] = mapped_column(server_default="0")
    budget: Mapped[int | None] = mapped_column(comment="tokens; NULL: no model")
    left_out: Mapped[list[Any]] = mapped_column(
        JSONB,
        server_default="[]",
        comment="what its model was not shown, to stay within the budget",
    )
    dropped: Mapped[list[Any]] = mapped_column(
        JSONB,
        server_default="[]",
        comment="what its model wrote, or was to write, that could not be stored, and why",
    )
    updated_at: Mapped[datetime] = added_at()


# The tables of live streams: their sources, how each clip was watched, and the gaps.


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
