"""An index of the clips that are not finished: what a view of a whole library looks for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

UNFINISHED = sa.text("clips.state NOT IN ('done', 'deleted')")


def upgrade() -> None:
    """Create the index."""
    columns = ["video_id", "clip"]
    op.create_index("unfinished_clips", "clips", columns, postgresql_where=UNFINISHED)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("unfinished_clips", "clips")
