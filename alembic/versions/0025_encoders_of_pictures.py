"""Record which image encoder made the vector of a keyframe."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# Rows are not filled: NULL means the image encoder on record for the video. That is the one that it
# was first watched with; which clips were watched later with another one is not known.
_OWN = "image encoder that made embedding; NULL: the one in videos.models"


def upgrade() -> None:
    """Add the column."""
    op.add_column("keyframes", sa.Column("image_encoder", sa.Text(), nullable=True, comment=_OWN))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("keyframes", "image_encoder")
