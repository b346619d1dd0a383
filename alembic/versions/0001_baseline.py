"""Create all tables, and the row-level security by which viewers see only what they may.

The tables are in the SQL file beside this one.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0001_4367230d"
down_revision = None
branch_labels = None
depends_on = None

OF_A_VIDEO = (
    "alert_clips",
    "alert_hits",
    "blobs",
    "builds",
    "clips",
    "edges",
    "entities",
    "frames",
    "identities",
    "identity_statements",
    "keepers",
    "keyframes",
    "memories",
    "nodes",
    "objects",
    "patches",
    "relations",
    "screen_texts",
    "segments",
    "sightings",
    "stream_clips",
    "stream_gaps",
    "streams",
    "utterances",
)
"""Tables whose rows are seen with their video."""

PARENTS = {
    "character_members": ("identities", "identity_id"),
    "exemplars": ("identities", "identity_id"),
    "memory_links": ("memories", "memory_id"),
    "memory_strengths": ("memories", "memory_id"),
    "node_revisions": ("nodes", "node_id"),
    "segment_revisions": ("segments", "segment_id"),
    "trajectory_videos": ("trajectories", "trajectory_id"),
    "trajectory_events": ("trajectories", "trajectory_id"),
    "model_calls": ("trajectories", "trajectory_id"),
    "judgements": ("trajectories", "trajectory_id"),
}
"""Tables whose rows are seen with a row of another: its table, and the column that refers to it."""

OTHERS = {
    "library": "true",
    "videos": "id IN (SELECT visible_videos())",
    "trajectories": "viewer = current_setting('homer.viewer', true)"
    " AND id NOT IN (SELECT hidden_trajectories())",
    "corrections": "video_id IN (SELECT visible_videos())"
    " AND (act IS NULL OR act NOT IN (SELECT hidden_acts()))",
    "character_names": "video_id IN (SELECT visible_videos())"
    " AND (act IS NULL OR act NOT IN (SELECT hidden_acts()))",
    "questions": "EXISTS (SELECT 1 FROM trajectories AS t WHERE t.question_id = questions.id)",
    "messages": "hash IN (SELECT unnest(c.messages) FROM model_calls AS c)",
}
UNSEEN = (
    "alerts",
    "audit",
    "enforced_rights",
    "eval_batches",
    "eval_results",
    "eval_runs",
    "grants",
    "group_members",
    "observations",
    "saved_searches",
    "shared_links",
    "skills",
    "taken",
)
"""Tables of which a viewer sees no row."""
CONTENT = {
    "alerts": ("name", "question"),
    "character_names": ("name",),
    "clips": ("error", "text", "embedding", "left_out", "dropped"),
    "corrections": ("told", "outcomes"),
    "edges": ("rationale",),
    "entities": ("name", "attributes", "embedding"),
    "eval_results": ("item", "verdict"),
    "exemplars": ("vector",),
    "frames": ("embedding", "next_embedding"),
    "identity_statements": ("reason",),
    "keepers": ("state",),
    "keyframes": (
        *("description", "embedding", "description_embedding", "likeness_vector"),
        *("next_embedding", "next_description_embedding"),
    ),
    "memories": ("text", "speaker", "embedding", "next_embedding", "words"),
    "messages": ("content",),
    "model_calls": ("reply", "error"),
    "node_revisions": ("label", "text", "embedding"),
    "objects": ("label",),
    "patches": ("applied", "dropped"),
    "questions": ("text", "options"),
    "relations": ("predicate", "embedding"),
    "screen_texts": ("text",),
    "segment_revisions": ("label", "summary", "history", "embedding", "next_embedding"),
    "stream_clips": ("recording",),
    "streams": ("source",),
    "trajectories": ("answer",),
    "trajectory_events": ("payload",),
    "utterances": ("text", "speaker"),
    "videos": ("title", "path", "subtitles", "remarks", "error"),
}
"""Columns of what was seen, said, asked and answered. Postgres keeps samples of a column's values
as statistics, also of rows that were deleted since: of these columns it keeps none."""


def upgrade() -> None:
    """Create the tables, functions and policies; the tables' owner is not subject to the latter."""
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in statements.replace("{schema}", schema).split(";\n"):
        if statement.strip():
            op.execute(statement)
    for table, condition in _conditions().items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY viewers ON {table} FOR SELECT USING ({condition})")
    for table, columns in CONTENT.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    for table in UNSEEN:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def _conditions() -> dict[str, str]:
    """Return the condition under which a viewer sees a row, by table."""
    of_a_video = dict.fromkeys(OF_A_VIDEO, "video_id IN (SELECT visible_videos())")
    children = {
        table: f"EXISTS (SELECT 1 FROM {parent} AS p WHERE p.id = {table}.{column})"  # noqa: S608
        for table, (parent, column) in PARENTS.items()
    }
    return {**of_a_video, **children, **OTHERS}
