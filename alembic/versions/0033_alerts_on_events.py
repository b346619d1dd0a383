"""Alerts on events: segments that wait to be judged, and events that a segment or a frame shows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

SEGMENTS = "true: the segments that were written after the clip; false: the clip itself"


def upgrade() -> None:
    """Add the columns; an alert may have several events of a clip: one a segment."""
    op.add_column(
        "alert_clips",
        sa.Column(
            "segments", sa.Boolean(), server_default="false", nullable=False, comment=SEGMENTS
        ),
    )
    op.drop_constraint("alert_clips_pkey", "alert_clips")
    op.create_primary_key("alert_clips_pkey", "alert_clips", ["video_id", "clip", "segments"])
    for name, table in (("segment_id", "segments"), ("keyframe_id", "keyframes")):
        key = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
        op.add_column("alert_events", sa.Column(name, sa.BigInteger(), key, nullable=True))
        op.create_index(f"ix_alert_events_{name}", "alert_events", [name])
    op.drop_constraint("alert_events_alert_id_video_id_clip_key", "alert_events")
    op.create_index("ix_alert_events_alert_id", "alert_events", ["alert_id"])


def downgrade() -> None:
    """Drop the columns, with what needs them."""
    op.execute("DELETE FROM alert_clips WHERE segments")
    op.execute("DELETE FROM alert_events WHERE segment_id IS NOT NULL OR keyframe_id IS NOT NULL")
    op.drop_index("ix_alert_events_alert_id", "alert_events")
    columns = ["alert_id", "video_id", "clip"]
    op.create_unique_constraint("alert_events_alert_id_video_id_clip_key", "alert_events", columns)
    for name in ("keyframe_id", "segment_id"):
        op.drop_column("alert_events", name)
    op.drop_constraint("alert_clips_pkey", "alert_clips")
    op.create_primary_key("alert_clips_pkey", "alert_clips", ["video_id", "clip"])
    op.drop_column("alert_clips", "segments")
