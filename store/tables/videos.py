"""The tables of videos and of their clips, and of what strategies build of a video.

``builder`` is who built a row. ``from_clip`` and ``to_clip`` are as in ``store.tables.schema``. All
that is built can be built again from what was watched.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import ARRAY, BigInteger, ForeignKeyConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.library import Base, added_at, primary_key, reference, video_column


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


# The condition of the index of clips that are not finished, which are few.
UNFINISHED = "clips.state NOT IN ('done', 'deleted')"


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


WRITERS = "rules, or names of models, in the order in which they first wrote"


class BuildRow(Base):
    """How far a builder has built the memory of a video: through which clip, -1 for none.

    ``encoder`` made the vectors.
    """

    __tablename__ = "builds"
    video_id: Mapped[str] = video_column(primary_key=True)
    builder: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    encoder: Mapped[str]
    through_clip: Mapped[int]
    built_at: Mapped[datetime] = added_at()
    writers: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}", comment=WRITERS)


class KeeperRow(Base):
    """What a keeper of frames carries from clip to clip: its state after ``through_clip``."""

    __tablename__ = "keepers"
    video_id: Mapped[str] = video_column(primary_key=True)
    builder: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    through_clip: Mapped[int]
    state: Mapped[dict[str, Any]] = mapped_column(JSONB)


class FrameRow(Base):
    """A frame that outlives its clip; ``reason`` is why, ``tier`` how far it was shrunk.

    ``image_encoder`` made ``embedding``, if there is one.
    """

    __tablename__ = "frames"
    __table_args__ = (UniqueConstraint("video_id", "builder", "time_ms"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    builder: Mapped[str]
    clip: Mapped[int]
    time_ms: Mapped[int] = mapped_column(BigInteger)
    blob: Mapped[str] = mapped_column(comment="SHA-256 of the JPEG")
    width: Mapped[int]
    height: Mapped[int]
    tier: Mapped[int]
    reason: Mapped[str]
    image_encoder: Mapped[str | None]
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    next_embedding: Mapped[Any | None] = mapped_column(HALFVEC())


class NodeRow(Base):
    """A node: a caption at a scale, an event, a document. Its content is in its revisions."""

    __tablename__ = "nodes"
    __table_args__ = (UniqueConstraint("video_id", "builder", "level", "number"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    builder: Mapped[str]
    level: Mapped[str] = mapped_column(comment="a scale, or a kind such as macro or root")
    number: Mapped[int]


class NodeRevisionRow(Base):
    """A revision of a node. ``children`` are numbers of nodes of the level below."""

    __tablename__ = "node_revisions"
    __table_args__ = (UniqueConstraint("node_id", "from_clip"),)
    id: Mapped[int] = primary_key()
    node_id: Mapped[int] = reference("nodes.id")
    label: Mapped[str]
    text: Mapped[str]
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    children: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    from_clip: Mapped[int]
    to_clip: Mapped[int | None]
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())


class EntityRow(Base):
    """An entity: a person, thing, place or event, from the clip on in which it is first named."""

    __tablename__ = "entities"
    __table_args__ = (UniqueConstraint("video_id", "builder", "type", "name"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    builder: Mapped[str]
    type: Mapped[str]
    name: Mapped[str] = mapped_column(comment="a person's tag where one is known")
    attributes: Mapped[dict[str, Any]] = mapped_column(JSONB)
    from_clip: Mapped[int]
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())


class RelationRow(Base):
    """A relation between two entities. ``node_id``: the node that states it, if one does."""

    __tablename__ = "relations"
    __table_args__ = (Index("relations_of_video", "video_id", "builder", "level", "from_clip"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    builder: Mapped[str]
    level: Mapped[str] = mapped_column(comment="a scale, or a kind such as semantic")
    subject_id: Mapped[int] = reference("entities.id", index=True)
    predicate: Mapped[str]
    object_id: Mapped[int] = reference("entities.id", index=True)
    node_id: Mapped[int | None] = reference("nodes.id", index=True)
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    evidence: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="clips")
    confidence: Mapped[float]
    from_clip: Mapped[int]
    to_clip: Mapped[int | None]
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())
