"""Record which step of the machine an event of a trajectory came from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    step = sa.Column("step", sa.Text(), nullable=False, server_default="")
    op.add_column("trajectory_events", step)


def downgrade() -> None:
    op.drop_column("trajectory_events", "step")
