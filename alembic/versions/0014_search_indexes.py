"""Add search indexes of videos, and index superseded memories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "search_indexes",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("through", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("video_id"),
    )
    # Numbers do not compress: pressing them would only cost time.
    op.execute("ALTER TABLE search_indexes ALTER COLUMN body SET STORAGE EXTERNAL")
    # Whatever deletes or rewrites what is remembered of a video writes the video's row, in a
    # transaction that reads what others have committed: so no index of before is left.
    op.execute(
        "CREATE FUNCTION search_index_goes() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN DELETE FROM search_indexes WHERE video_id = OLD.id; RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER search_index_goes AFTER UPDATE ON videos "
        "FOR EACH ROW EXECUTE FUNCTION search_index_goes()"
    )
    op.create_index(
        "memories_superseded",
        "memories",
        ["video_id"],
        postgresql_where=sa.text("superseded_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("memories_superseded", "memories")
    op.execute("DROP TRIGGER search_index_goes ON videos")
    op.execute("DROP FUNCTION search_index_goes()")
    op.drop_table("search_indexes")
