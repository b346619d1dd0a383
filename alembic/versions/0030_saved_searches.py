"""Searches of the library that are saved under a name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    now = sa.func.now()
    op.create_table(
        "saved_searches",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("query", JSONB(), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), server_default=now, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("saved_searches")
