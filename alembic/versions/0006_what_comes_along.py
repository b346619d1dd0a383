"""Add the subtitles of a video, objects on keyframes, and how long each clip took."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "videos",
        sa.Column(
            "subtitles",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="subtitles and chapters that were used; NULL: ignored",
        ),
    )
    op.add_column(
        "clips",
        sa.Column("seconds", sa.Double(), server_default="0", nullable=False),
    )
    op.create_table(
        "objects",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("box", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("objects_of_clip", "objects", ["video_id", "clip"])


def downgrade() -> None:
    op.drop_table("objects")
    op.drop_column("clips", "seconds")
    op.drop_column("videos", "subtitles")
