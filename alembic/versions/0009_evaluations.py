"""Add evaluation runs, the result of each question, and what was learned in between."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

JSONB = postgresql.JSONB(astext_type=sa.Text())


def upgrade() -> None:
    op.create_table(
        "eval_runs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("settings", JSONB, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column(
            "began_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "eval_results",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("arm", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("trajectory_id", sa.Text(), nullable=True),
        sa.Column("item", JSONB, nullable=False),
        sa.Column("verdict", JSONB, nullable=True),
        sa.ForeignKeyConstraint(["run"], ["eval_runs.name"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "arm", "question"),
        sa.UniqueConstraint("trajectory_id"),
    )
    op.create_index("ix_eval_results_video_id", "eval_results", ["video_id"])
    op.create_table(
        "eval_batches",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("learned", JSONB, nullable=False),
        sa.Column(
            "learned_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["run"], ["eval_runs.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "batch"),
    )


def downgrade() -> None:
    op.drop_table("eval_batches")
    op.drop_table("eval_results")
    op.drop_table("eval_runs")
