"""Add the token budget of a clip's writer, and what was left out of its prompt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "clips", sa.Column("budget", sa.Integer(), nullable=True, comment="tokens; NULL: no model")
    )
    op.add_column(
        "clips",
        sa.Column(
            "left_out",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
            comment="what its model was not shown, to stay within the budget",
        ),
    )


def downgrade() -> None:
    op.drop_column("clips", "left_out")
    op.drop_column("clips", "budget")
