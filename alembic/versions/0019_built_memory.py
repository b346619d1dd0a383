"""What strategies build: frames, nodes with revisions, entities, relations, and how far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def _of_video(*columns: sa.Column[object]) -> list[sa.Column[object]]:
    return [
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column(
            "video_id", sa.Text(), sa.ForeignKey("videos.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("builder", sa.Text(), nullable=False),
        *columns,
    ]


def _reference(name: str, target: str, *, nullable: bool = False) -> sa.Column[object]:
    key = sa.ForeignKey(target, ondelete="CASCADE")
    return sa.Column(name, sa.BigInteger(), key, nullable=nullable)


def _text(name: str, comment: str | None = None) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False, comment=comment)


def _number(name: str, *, big: bool = False, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger() if big else sa.Integer(), nullable=nullable)


def _clips(name: str, comment: str | None = None) -> sa.Column[object]:
    return sa.Column(name, postgresql.ARRAY(sa.BigInteger()), nullable=False, comment=comment)


def _vector() -> sa.Column[object]:
    return sa.Column("embedding", HALFVEC(), nullable=True)


def upgrade() -> None:
    op.create_table(
        "builds",
        sa.Column(
            "video_id", sa.Text(), sa.ForeignKey("videos.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("builder", sa.Text(), primary_key=True),
        _number("version"),
        _number("through_clip"),
        sa.Column(
            "built_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False
        ),
    )
    op.create_table(
        "frames",
        *_of_video(
            _number("clip"),
            _number("time_ms", big=True),
            _text("blob", "SHA-256 of the JPEG"),
            _number("tier"),
            _text("reason"),
            _vector(),
        ),
        sa.UniqueConstraint("video_id", "builder", "time_ms"),
    )
    op.create_table(
        "nodes",
        *_of_video(_text("level", "a scale, or a kind such as macro or root"), _number("number")),
        sa.UniqueConstraint("video_id", "builder", "level", "number"),
    )
    op.create_table(
        "node_revisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        _reference("node_id", "nodes.id"),
        _text("label"),
        _text("text"),
        _number("start_ms", big=True),
        _number("end_ms", big=True),
        _clips("children"),
        _number("from_clip"),
        _number("to_clip", nullable=True),
        _vector(),
        sa.UniqueConstraint("node_id", "from_clip"),
    )
    op.create_table(
        "entities",
        *_of_video(
            _text("type"),
            _text("name", "a person's tag where one is known"),
            sa.Column("attributes", postgresql.JSONB(), nullable=False),
            _number("from_clip"),
            _vector(),
        ),
        sa.UniqueConstraint("video_id", "builder", "type", "name"),
    )
    op.create_table(
        "relations",
        *_of_video(
            _text("level", "a scale, or a kind such as semantic"),
            _reference("subject_id", "entities.id"),
            _text("predicate"),
            _reference("object_id", "entities.id"),
            _reference("node_id", "nodes.id", nullable=True),
            _number("start_ms", big=True),
            _number("end_ms", big=True),
            _clips("evidence", "clips"),
            sa.Column("confidence", sa.Float(), nullable=False),
            _number("from_clip"),
            _number("to_clip", nullable=True),
            _vector(),
        ),
    )
    op.create_index(
        "relations_of_video", "relations", ["video_id", "builder", "level", "from_clip"]
    )
    for column in ("subject_id", "object_id", "node_id"):
        op.create_index(f"ix_relations_{column}", "relations", [column])


def downgrade() -> None:
    for table in ("relations", "entities", "node_revisions", "nodes", "frames", "builds"):
        op.drop_table(table)
