"""Add what schedules have processed: files of watched folders and fetched addresses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "taken",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("told", sa.Text()),
        sa.Column(
            "taken_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
    )


def downgrade() -> None:
    op.drop_table("taken")
