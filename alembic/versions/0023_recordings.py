"""The recordings of clips of streams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

SHA = "the SHA-256 of an MP4"
START = "video time of its start"


def upgrade() -> None:
    """Add the columns; nothing was recorded before."""
    op.add_column("stream_clips", sa.Column("recording", sa.Text(), nullable=True, comment=SHA))
    op.add_column(
        "stream_clips", sa.Column("recording_ms", sa.BigInteger(), nullable=True, comment=START)
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("recording", "recording_ms"):
        op.drop_column("stream_clips", name)
