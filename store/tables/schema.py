"""The tables of videos and their memory; all tables are exported here.

Clip columns: ``clip`` is where a row was learned; ``from_clip`` the clip after which a revision is
valid; ``to_clip`` the clip after which it is not (NULL: still valid). A view as of clip ``c`` sees
``from_clip <= c AND (to_clip IS NULL OR to_clip > c)``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import HALFVEC, VECTOR
from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Computed,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from store.tables.library import (
    AuditRow,
    Base,
    BlobRow,
    LibraryRow,
    TakenRow,
    added_at,
    primary_key,
    reference,
    video_column,
)
from store.tables.questions import (
    AlertClipRow,
    AlertHitRow,
    AlertRow,
    EvalBatchRow,
    EvalResultRow,
    EvalRunRow,
    JudgementRow,
    MessageRow,
    ModelCallRow,
    ObservationRow,
    QuestionRow,
    SkillRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)
from store.tables.videos import (
    WRITERS,
    BuildRow,
    ClipRow,
    EntityRow,
    FrameRow,
    KeeperRow,
    NodeRevisionRow,
    NodeRow,
    RelationRow,
    StreamClipRow,
    StreamGapRow,
    StreamRow,
    VideoRow,
)

__all__ = [
    "AlertClipRow",
    "AlertHitRow",
    "AlertRow",
    "AuditRow",
    "Base",
    "BlobRow",
    "BuildRow",
    "CharacterMemberRow",
    "CharacterNameRow",
    "ClipRow",
    "CorrectionRow",
    "EdgeRow",
    "EntityRow",
    "EvalBatchRow",
    "EvalResultRow",
    "EvalRunRow",
    "ExemplarRow",
    "FrameRow",
    "IdentityRow",
    "IdentityStatementRow",
    "JudgementRow",
    "KeeperRow",
    "KeyframeRow",
    "LibraryRow",
    "MemoryLinkRow",
    "MemoryRow",
    "MemoryStrengthRow",
    "MessageRow",
    "ModelCallRow",
    "NodeRevisionRow",
    "NodeRow",
    "ObjectRow",
    "ObservationRow",
    "PatchRow",
    "QuestionRow",
    "RelationRow",
    "ScreenTextRow",
    "SegmentRevisionRow",
    "SegmentRow",
    "SightingRow",
    "SkillRow",
    "StreamClipRow",
    "StreamGapRow",
    "StreamRow",
    "TakenRow",
    "TrajectoryEventRow",
    "TrajectoryRow",
    "TrajectoryVideoRow",
    "UtteranceRow",
    "VideoRow",
]


class _OfClip:
    """Columns of everything that belongs to one clip."""

    video_id: Mapped[str]
    clip: Mapped[int]


def _clip_fk() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
    )


LOOKED_AT = -1
"""``KeyframeRow.shot`` of a frame that a question looked at: it was not chosen while watching."""


class KeyframeRow(_OfClip, Base):
    """A keyframe; ``blob`` is the SHA-256 of its JPEG.

    ``description``: what it shows in words, with tags of people; ``description_embedding`` is the
    vector of that text, ``embedding`` that of the picture under an image-text model, and
    ``likeness_vector`` what it looks like (``perception/images.py``).
    """

    __tablename__ = "keyframes"
    __table_args__ = (_clip_fk(), Index("keyframes_of_clip", "video_id", "clip"))
    id: Mapped[int] = primary_key()
    time_ms: Mapped[int] = mapped_column(BigInteger)
    shot: Mapped[int]
    sharpness: Mapped[float]
    entropy: Mapped[float]
    quality: Mapped[float]
    width: Mapped[int]
    height: Mapped[int]
    blob: Mapped[str]
    description: Mapped[str | None]
    embedding: Mapped[Any | None] = mapped_column(VECTOR())
    description_embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    likeness_vector: Mapped[Any | None] = mapped_column(HALFVEC())
    next_embedding: Mapped[Any | None] = mapped_column(VECTOR())
    next_description_embedding: Mapped[Any | None] = mapped_column(HALFVEC())


class IdentityRow(Base):
    """A face or a voice known across the clips of a video."""

    __tablename__ = "identities"
    __table_args__ = (
        UniqueConstraint("video_id", "kind", "number"),
        UniqueConstraint("video_id", "character"),
    )
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    kind: Mapped[str]
    number: Mapped[int]
    first_clip: Mapped[int]
    character: Mapped[int] = mapped_column(comment="number of the character that it began as")


class SightingRow(_OfClip, Base):
    """One sighting of an identity. ``box`` is [x0, y0, x1, y1] in pixels of the sampled frame."""

    __tablename__ = "sightings"
    __table_args__ = (_clip_fk(), Index("sightings_of_clip", "video_id", "clip"))
    id: Mapped[int] = primary_key()
    identity_id: Mapped[int] = reference("identities.id", index=True)
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    box: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    score: Mapped[float]
    quality: Mapped[float]
    blob: Mapped[str | None]


class ExemplarRow(Base):
    """A vector by which an identity is recognised (at most 10 a face, 20 a voice)."""

    __tablename__ = "exemplars"
    id: Mapped[int] = primary_key()
    identity_id: Mapped[int] = reference("identities.id", index=True)
    sighting_id: Mapped[int] = reference("sightings.id", unique=True)
    quality: Mapped[float]
    vector: Mapped[Any] = mapped_column(VECTOR())


class UtteranceRow(_OfClip, Base):
    """Words said (``origin`` speech) or from the source: caption, subtitle, chapter."""

    __tablename__ = "utterances"
    __table_args__ = (_clip_fk(), Index("utterances_of_clip", "video_id", "clip"))
    id: Mapped[int] = primary_key()
    origin: Mapped[str]
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    text: Mapped[str]
    language: Mapped[str]
    confidence: Mapped[float]
    speaker: Mapped[str | None]
    identity_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("identities.id", ondelete="SET NULL")
    )


class _OnKeyframe(_OfClip):
    """Something found on a keyframe. ``box`` is [x0, y0, x1, y1] in its pixels."""

    id: Mapped[int] = primary_key()
    time_ms: Mapped[int] = mapped_column(BigInteger)
    score: Mapped[float]
    box: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))


class ScreenTextRow(_OnKeyframe, Base):
    """A line of text read on a keyframe."""

    __tablename__ = "screen_texts"
    __table_args__ = (_clip_fk(), Index("screen_texts_of_clip", "video_id", "clip"))
    text: Mapped[str]


class ObjectRow(_OnKeyframe, Base):
    """An object seen on a keyframe, by the name of its class."""

    __tablename__ = "objects"
    __table_args__ = (_clip_fk(), Index("objects_of_clip", "video_id", "clip"))
    label: Mapped[str]


class CharacterMemberRow(Base):
    """An identity is in the character of a number, from a clip on.

    ``learned``: as the statements have it; ``in_force``: with users' corrections applied.
    """

    __tablename__ = "character_members"
    id: Mapped[int] = primary_key()
    identity_id: Mapped[int] = reference("identities.id", index=True)
    number: Mapped[int]
    from_clip: Mapped[int]
    to_clip: Mapped[int | None]
    learned: Mapped[bool] = mapped_column(server_default=text("true"))
    in_force: Mapped[bool] = mapped_column(server_default=text("true"))


class CharacterNameRow(Base):
    """A name, learned of an identity or given to the character of a number by a user.

    ``source``: said, read, caption, model; person: a user. ``ignored``: users took this name.
    """

    __tablename__ = "character_names"
    __table_args__ = (CheckConstraint("(identity_id IS NULL) = (source = 'person')"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column(index=True)
    identity_id: Mapped[int | None] = reference("identities.id", index=True)
    number: Mapped[int | None]
    name: Mapped[str]
    source: Mapped[str]
    from_clip: Mapped[int]
    act: Mapped[str | None] = mapped_column(comment="of the corrections of several videos")
    ignored: Mapped[bool] = mapped_column(server_default=text("false"))


class CorrectionRow(Base):
    """A user's correction of the people of a video, until it is undone (``undone``).

    What was learned stays; ``character_members`` and ``character_names`` say what holds with the
    corrections. ``numbers``: the characters concerned. ``outcomes``: their states from then on.
    """

    __tablename__ = "corrections"
    __table_args__ = (UniqueConstraint("video_id", "number"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    number: Mapped[int]
    kind: Mapped[str]
    told: Mapped[str]
    numbers: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    outcomes: Mapped[list[Any]] = mapped_column(JSONB)
    undone: Mapped[bool] = mapped_column(server_default=text("false"))
    made_at: Mapped[datetime] = added_at()
    act: Mapped[str | None] = mapped_column(
        index=True, comment="shared by the corrections of several videos that are undone as one"
    )


class IdentityStatementRow(Base):
    """Support for "this face is this voice", clip by clip."""

    __tablename__ = "identity_statements"
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    clip: Mapped[int]
    face_id: Mapped[int] = reference("identities.id")
    voice_id: Mapped[int] = reference("identities.id")
    support: Mapped[float]
    reason: Mapped[str]


class MemoryRow(_OfClip, Base):
    """A memory with its vector and its words."""

    __tablename__ = "memories"
    __table_args__ = (
        _clip_fk(),
        Index("memories_of_clip", "video_id", "clip"),
        Index("memories_words", "words", postgresql_using="gin"),
        Index(
            "memories_of_speaker",
            *("video_id", "speaker", "clip"),
            postgresql_where=text("speaker IS NOT NULL"),
        ),
        Index(
            "memories_superseded", "video_id", postgresql_where=text("superseded_at IS NOT NULL")
        ),
    )
    id: Mapped[int] = primary_key()
    kind: Mapped[str]
    text: Mapped[str]
    start_ms: Mapped[int] = mapped_column(BigInteger)
    end_ms: Mapped[int] = mapped_column(BigInteger)
    source: Mapped[str]
    speaker: Mapped[str | None]
    superseded_at: Mapped[int | None] = mapped_column(comment="clip after which it is no more so")
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    next_embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    words: Mapped[Any] = mapped_column(
        TSVECTOR, Computed("search_words(text, speaker)", persisted=True)
    )


class MemoryLinkRow(Base):
    """A mention of an identity by a memory."""

    __tablename__ = "memory_links"
    memory_id: Mapped[int] = reference("memories.id", primary_key=True)
    identity_id: Mapped[int] = reference("identities.id", primary_key=True, index=True)


class MemoryStrengthRow(Base):
    """A confirmation of a semantic memory at ``clip``: its strength is 1 + the rows in view."""

    __tablename__ = "memory_strengths"
    id: Mapped[int] = primary_key()
    memory_id: Mapped[int] = reference("memories.id", index=True)
    clip: Mapped[int]


class SegmentRow(Base):
    """A segment of the event graph; its label, summary and clips are in its revisions."""

    __tablename__ = "segments"
    __table_args__ = (UniqueConstraint("video_id", "number"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    number: Mapped[int]


class SegmentRevisionRow(Base):
    """A revision of a segment. ``absorbed_into``: the segment that absorbed it, if any."""

    __tablename__ = "segment_revisions"
    __table_args__ = (
        UniqueConstraint("segment_id", "revision"),
        # Patches look up open segments by label and clip, at any size of the graph.
        Index("segment_revisions_label", "label", postgresql_where=text("to_clip IS NULL")),
        Index(
            "segment_revisions_clips",
            "clips",
            postgresql_using="gin",
            postgresql_where=text("to_clip IS NULL"),
        ),
    )
    id: Mapped[int] = primary_key()
    segment_id: Mapped[int] = reference("segments.id")
    revision: Mapped[int]
    label: Mapped[str]
    summary: Mapped[str]
    clips: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    history: Mapped[list[Any]] = mapped_column(JSONB, comment="summaries of absorbed segments")
    from_clip: Mapped[int]
    to_clip: Mapped[int | None]
    absorbed_into: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("segments.id", ondelete="SET NULL")
    )
    embedding: Mapped[Any | None] = mapped_column(HALFVEC())
    next_embedding: Mapped[Any | None] = mapped_column(HALFVEC())


class EdgeRow(Base):
    """One revision of an edge: a change closes the row and opens another."""

    __tablename__ = "edges"
    __table_args__ = (Index("edges_of_video", "video_id", "from_clip"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    source_id: Mapped[int] = reference("segments.id", index=True)
    target_id: Mapped[int] = reference("segments.id", index=True)
    relation: Mapped[str]
    explicit: Mapped[bool]
    confidence: Mapped[float]
    rationale: Mapped[str]
    evidence: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="clips")
    from_clip: Mapped[int]
    to_clip: Mapped[int | None]


class PatchRow(Base):
    """A patch after a window: what was applied, and what was dropped and why."""

    __tablename__ = "patches"
    __table_args__ = (UniqueConstraint("video_id", "at_clip"),)
    id: Mapped[int] = primary_key()
    video_id: Mapped[str] = video_column()
    at_clip: Mapped[int]
    first_clip: Mapped[int]
    repairs: Mapped[int]
    applied: Mapped[dict[str, Any]] = mapped_column(JSONB)
    dropped: Mapped[list[Any]] = mapped_column(JSONB)
    pending: Mapped[list[int]] = mapped_column(ARRAY(BigInteger), comment="clips left uncovered")
    writers: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}", comment=WRITERS)
