"""What keepers of frames carry from clip to clip, and the sizes and encoders of frames."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the columns; no frame was kept before."""
    video = sa.ForeignKey("videos.id", ondelete="CASCADE")
    op.create_table(
        "keepers",
        sa.Column("video_id", sa.Text(), video, primary_key=True),
        sa.Column("builder", sa.Text(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("through_clip", sa.Integer(), nullable=False),
        sa.Column("state", postgresql.JSONB(), nullable=False),
    )
    for name in ("width", "height"):
        op.add_column("frames", sa.Column(name, sa.Integer(), server_default="0", nullable=False))
        op.alter_column("frames", name, server_default=None)
    op.add_column("frames", sa.Column("image_encoder", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them."""
    for name in ("width", "height", "image_encoder"):
        op.drop_column("frames", name)
    op.drop_table("keepers")
