"""Index the questions that were given skills."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX trajectory_events_of_skills ON trajectory_events (trajectory_id) "
        "WHERE kind = 'skills'"
    )


def downgrade() -> None:
    op.drop_index("trajectory_events_of_skills")
