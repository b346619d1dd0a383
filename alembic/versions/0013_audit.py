"""Add the audit log, an append-only table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column(
            "id", sa.Text(), server_default=sa.text("(gen_random_uuid())::text"), nullable=False
        ),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("deed", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_by_time", "audit", ["at"])
    op.execute(
        "CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'rows of the audit log are neither changed nor deleted'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept()"
    )


def downgrade() -> None:
    op.drop_table("audit")
    op.execute("DROP FUNCTION audit_is_kept()")
