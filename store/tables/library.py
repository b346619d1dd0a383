"""The base of all tables: mapping of Python types to Postgres, keys and references."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, DateTime, ForeignKey, Identity, Index, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Base class of all tables; maps Python types to Postgres types."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        dict[str, Any]: JSONB,
        list[Any]: JSONB,
    }


def primary_key() -> Mapped[int]:
    """Return the primary key column: an identity."""
    return mapped_column(BigInteger, Identity(), primary_key=True)


def video_column(**kwargs: Any) -> Mapped[str]:
    """Return a foreign key column to the video of a row."""
    return mapped_column(ForeignKey("videos.id", ondelete="CASCADE"), **kwargs)


def reference(target: str, **kwargs: Any) -> Mapped[Any]:
    """Return a foreign key column; rows are deleted with what they refer to."""
    return mapped_column(BigInteger, ForeignKey(target, ondelete="CASCADE"), **kwargs)


def added_at() -> Mapped[datetime]:
    """Return a column with the time when a row was added."""
    return mapped_column(DateTime(timezone=True), server_default=func.now())


# Tables of a library as a whole: its own row, rights, audit log, processed files, blobs, links.


# Its blobs are in a folder of that name: two databases may share a data directory, and neither must
# remove the other's blobs.
class LibraryRow(Base):
    """The one row that tells this database from others, and which models made its vectors."""

    __tablename__ = "library"
    id: Mapped[str] = mapped_column(primary_key=True)
    text_encoder: Mapped[str | None] = mapped_column(
        comment="made all vectors of texts; NULL: there is none yet"
    )
    image_encoder: Mapped[str | None]
    next_text_encoder: Mapped[str | None] = mapped_column(
        comment="made next_embedding, while the library is changed"
    )
    next_image_encoder: Mapped[str | None]


class EnforcedRightsRow(Base):
    """A row is there while rights are enforced."""

    __tablename__ = "enforced_rights"
    since: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), primary_key=True, server_default=func.now()
    )


class GroupMemberRow(Base):
    """A user or key in a group, by name."""

    __tablename__ = "group_members"
    group_name: Mapped[str] = mapped_column(primary_key=True)
    member: Mapped[str] = mapped_column(primary_key=True)


class GrantRow(Base):
    """What a user, key or group may see: a video, the videos of a folder, or neither: everything.

    ``folder`` ends with a slash. Rows are added, removed, and read by the row-level security.
    """

    __tablename__ = "grants"
    id: Mapped[int] = primary_key()
    grantee: Mapped[str]
    is_group: Mapped[bool]
    video_id: Mapped[str | None] = video_column(index=True)
    folder: Mapped[str | None]


# The database rejects changes and deletions of rows. Their ids are random, so that the logs of two
# libraries can be merged.
class AuditRow(Base):
    """One recorded action; ``subject`` is an id, without a foreign key: the row outlives it."""

    __tablename__ = "audit"
    __table_args__ = (Index("audit_by_time", "at"),)
    id: Mapped[str] = mapped_column(
        primary_key=True, server_default=text("(gen_random_uuid())::text")
    )
    at: Mapped[datetime] = added_at()
    who: Mapped[str]
    deed: Mapped[str]
    subject: Mapped[str]


class TakenRow(Base):
    """A processed file or address; ``key`` is a digest, so that no name is stored.

    ``told`` is the error if it could not be watched; None: it was.
    """

    __tablename__ = "taken"
    key: Mapped[str] = mapped_column(primary_key=True)
    told: Mapped[str | None]
    taken_at: Mapped[datetime] = added_at()


class SavedSearchRow(Base):
    """A search of the library, saved under a name; ``query`` has words and filters."""

    __tablename__ = "saved_searches"
    name: Mapped[str] = mapped_column(primary_key=True)
    query: Mapped[dict[str, Any]]
    saved_at: Mapped[datetime] = added_at()


class BlobRow(Base):
    """A blob that a video uses; one in use by another video is never deleted with this one."""

    __tablename__ = "blobs"
    video_id: Mapped[str] = video_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(primary_key=True, index=True)
    size: Mapped[int] = mapped_column(BigInteger)


class SharedLinkRow(Base):
    """A link to an answer, or to a moment of a video. What it is signed with is not in here."""

    __tablename__ = "shared_links"
    id: Mapped[str] = mapped_column(primary_key=True)
    trajectory_id: Mapped[str | None] = mapped_column(
        ForeignKey("trajectories.id", ondelete="CASCADE"), index=True
    )
    video_id: Mapped[str | None] = video_column(index=True)
    start_ms: Mapped[int | None] = mapped_column(BigInteger)
    end_ms: Mapped[int | None] = mapped_column(BigInteger)
    made_at: Mapped[datetime] = added_at()
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
