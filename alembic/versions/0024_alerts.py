"""Alerts: standing questions, clips that wait to be judged, and events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

DELIVERY = "webhook, command; NULL: none"
ERROR = "why it was not delivered, without content"


def upgrade() -> None:
    """Add the tables."""
    clip = (["video_id", "clip"], ["clips.video_id", "clips.clip"])
    now = sa.func.now()
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("video_id", sa.Text(), _key("videos.id"), nullable=True),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("debounce_ms", sa.BigInteger(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=True, comment=DELIVERY),
        sa.Column("made_at", sa.DateTime(timezone=True), server_default=now, nullable=False),
    )
    op.create_table(
        "alert_clips",
        sa.Column("video_id", sa.Text(), primary_key=True),
        sa.Column("clip", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(*clip, ondelete="CASCADE"),
    )
    op.create_table(
        "alert_events",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("alert_id", sa.Text(), _key("alerts.id"), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("memory_id", sa.BigInteger(), _key("memories.id"), nullable=True),
        sa.Column("identity_id", sa.BigInteger(), _key("identities.id"), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True, comment=ERROR),
        sa.Column("next_at", sa.DateTime(timezone=True), server_default=now, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=now, nullable=False),
        sa.ForeignKeyConstraint(*clip, ondelete="CASCADE"),
        sa.UniqueConstraint("alert_id", "video_id", "clip"),
    )
    op.create_index("ix_alerts_video_id", "alerts", ["video_id"])
    for name in ("memory_id", "identity_id"):
        op.create_index(f"ix_alert_events_{name}", "alert_events", [name])
    op.create_index("alert_events_of_clip", "alert_events", ["video_id", "clip"])
    waiting = sa.text("state = 'waiting'")
    op.create_index("alert_events_waiting", "alert_events", ["next_at"], postgresql_where=waiting)


def _key(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def downgrade() -> None:
    """Drop them."""
    for name in ("alert_events", "alert_clips", "alerts"):
        op.drop_table(name)
