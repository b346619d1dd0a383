"""Add live streams: their source, how each clip was watched, and gaps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "streams",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("began_ms", sa.BigInteger(), nullable=False, comment="Unix time of video time 0"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("video_id"),
    )
    op.create_table(
        "stream_clips",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("came", sa.Integer(), nullable=False),
        sa.Column("damaged", sa.Integer(), nullable=False),
        sa.Column("sampled", sa.Integer(), nullable=False),
        sa.Column("lag_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("video_id", "clip"),
    )
    op.create_table(
        "stream_gaps",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("frames", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("stream_gaps_of_video", "stream_gaps", ["video_id", "start_ms"])


def downgrade() -> None:
    for table in ("stream_gaps", "stream_clips", "streams"):
        op.drop_table(table)
