"""Who wrote each patch of the event graph: rules, or which language models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

WRITERS = "rules, or names of models, in the order in which they first wrote; empty: not on record"


def upgrade() -> None:
    """Add the column; of earlier patches it is not on record."""
    names = ARRAY(sa.Text())
    op.add_column(
        "patches",
        sa.Column("writers", names, server_default="{}", nullable=False, comment=WRITERS),
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("patches", "writers")
