"""What keyframes look like, as vectors, for searches by an example."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("keyframes", sa.Column("likeness_vector", HALFVEC(), nullable=True))


def downgrade() -> None:
    op.drop_column("keyframes", "likeness_vector")
