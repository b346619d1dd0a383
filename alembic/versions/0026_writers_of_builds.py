"""Who wrote what was built: rules, or which language models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

WRITERS = "rules, or names of models, in the order in which they first wrote; empty: not on record"


def upgrade() -> None:
    """Add the column; of earlier builds it is not on record."""
    names = ARRAY(sa.Text())
    op.add_column(
        "builds",
        sa.Column("writers", names, server_default="{}", nullable=False, comment=WRITERS),
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("builds", "writers")
