"""Links to one answer or moment, for somebody without an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "shared_links",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("trajectory_id", sa.Text(), _key("trajectories.id"), nullable=True),
        sa.Column("video_id", sa.Text(), _key("videos.id"), nullable=True),
        sa.Column("start_ms", sa.BigInteger(), nullable=True),
        sa.Column("end_ms", sa.BigInteger(), nullable=True),
        sa.Column("made_at", time, server_default=sa.func.now(), nullable=False),
        sa.Column("expires_at", time, nullable=False),
    )
    for name in ("trajectory_id", "video_id"):
        op.create_index(f"ix_shared_links_{name}", "shared_links", [name])


def _key(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("shared_links")
