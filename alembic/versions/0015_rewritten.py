"""Record when a video's text last changed, so that progress does not invalidate indexes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# Whoever writes a row without changing anything says that what was learned is not as it was, as
# versions did that know nothing of the column.
_STAMP = """
CREATE FUNCTION video_rewritten() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE progress text[] := '{duration_ms,state,error,path}';
BEGIN
    IF TG_OP = 'INSERT' OR NEW IS NOT DISTINCT FROM OLD
       OR to_jsonb(NEW) - progress IS DISTINCT FROM to_jsonb(OLD) - progress THEN
        NEW.rewritten := CAST(CAST(pg_current_xact_id() AS text) AS bigint);
    END IF;
    RETURN NEW;
END $$
"""
_GOES = (
    "CREATE TRIGGER search_index_goes AFTER UPDATE ON videos FOR EACH ROW {}"
    "EXECUTE FUNCTION search_index_goes()"
)


def upgrade() -> None:
    op.add_column(
        "videos",
        sa.Column(
            "rewritten",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="by a trigger: the transaction that last deleted or said anew what was learned",
        ),
    )
    op.execute(_STAMP)
    op.execute(
        "CREATE TRIGGER video_rewritten BEFORE INSERT OR UPDATE ON videos "
        "FOR EACH ROW EXECUTE FUNCTION video_rewritten()"
    )
    op.execute("DROP TRIGGER search_index_goes ON videos")
    op.execute(_GOES.format("WHEN (OLD.rewritten IS DISTINCT FROM NEW.rewritten) "))


def downgrade() -> None:
    op.execute("DROP TRIGGER search_index_goes ON videos")
    op.execute(_GOES.format(""))
    op.execute("DROP TRIGGER video_rewritten ON videos")
    op.execute("DROP FUNCTION video_rewritten()")
    op.drop_column("videos", "rewritten")
