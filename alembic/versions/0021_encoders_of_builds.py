"""Which text encoder made the vectors of a build."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nothing was built before it."""
    op.add_column("builds", sa.Column("encoder", sa.Text(), server_default="", nullable=False))
    op.alter_column("builds", "encoder", server_default=None)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("builds", "encoder")
