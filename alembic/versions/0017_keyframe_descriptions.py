"""Add descriptions of keyframes with vectors, the writer of each clip, and what it omitted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("keyframes", sa.Column("description_embedding", HALFVEC(), nullable=True))
    op.add_column(
        "clips",
        sa.Column(
            "writer_version",
            sa.Integer(),
            nullable=True,
            comment="of the request that its model was sent; NULL: no model, or before 0017",
        ),
    )
    op.add_column(
        "clips",
        sa.Column(
            "dropped",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
            comment="what its model wrote, or was to write, that could not be stored, and why",
        ),
    )


def downgrade() -> None:
    op.drop_column("clips", "dropped")
    op.drop_column("clips", "writer_version")
    op.drop_column("keyframes", "description_embedding")
