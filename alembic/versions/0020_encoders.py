"""Record which text encoder made a vector."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

# Rows are not filled: NULL means the text model on record for the video, and filling would
# rewrite every row of memory.
_OWN = "text encoder that made the vector; NULL: the one in videos.models"
_COLUMNS = {
    "clips": "encoder",
    "keyframes": "description_encoder",
    "memories": "encoder",
    "segment_revisions": "encoder",
}


def upgrade() -> None:
    for table, column in _COLUMNS.items():
        op.add_column(table, sa.Column(column, sa.Text(), nullable=True, comment=_OWN))
    op.add_column(
        "videos",
        sa.Column(
            "encoders",
            postgresql.ARRAY(sa.Text()),
            nullable=True,
            comment="text encoders of its rows besides the one in models; NULL: none",
        ),
    )


def downgrade() -> None:
    op.drop_column("videos", "encoders")
    for table, column in _COLUMNS.items():
        op.drop_column(table, column)
