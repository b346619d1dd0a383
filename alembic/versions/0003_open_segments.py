"""Index open segments by label and by clips, which patches look up."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX segment_revisions_label ON segment_revisions (label) WHERE to_clip IS NULL"
    )
    op.execute(
        "CREATE INDEX segment_revisions_clips ON segment_revisions USING gin (clips) "
        "WHERE to_clip IS NULL"
    )


def downgrade() -> None:
    op.drop_index("segment_revisions_clips")
    op.drop_index("segment_revisions_label")
