"""Corrections of several videos that were made as one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

ACT = "shared by the corrections of several videos that are undone as one"


def upgrade() -> None:
    """Add the column and its index; every earlier correction is of one video alone."""
    op.add_column("corrections", sa.Column("act", sa.Text(), nullable=True, comment=ACT))
    op.create_index("ix_corrections_act", "corrections", ["act"])


def downgrade() -> None:
    """Drop both."""
    op.drop_index("ix_corrections_act", "corrections")
    op.drop_column("corrections", "act")
