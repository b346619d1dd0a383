"""Give each database an id, so that databases can share a data directory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("library", sa.Column("id", sa.Text(), primary_key=True))
    op.execute("INSERT INTO library VALUES (replace(gen_random_uuid()::text, '-', ''))")


def downgrade() -> None:
    op.drop_table("library")
