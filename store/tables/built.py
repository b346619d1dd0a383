"""What strategies build of a video, besides what every strategy sees.

``builder`` is who built a row. ``from_clip`` and ``to_clip`` are as in ``store.tables.schema``. All
of it can be built again from what was watched.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import ARRAY, BigInteger, Index, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.library import Base, added_at, primary_key, reference, video_column

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
