"""Rights: who may see which videos, enforced by row-level security for a role that only reads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

OF_A_VIDEO = (
    "alert_clips",
    "alert_events",
    "blobs",
    "builds",
    "characters",
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
    "character_members": ("characters", "character_id"),
    "character_names": ("characters", "character_id"),
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

VISIBLE = """
CREATE FUNCTION visible_videos() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    WITH given AS (
        SELECT g.video_id, g.folder FROM grants AS g
        WHERE g.grantee = current_setting('homer.viewer', true) AND NOT g.is_group
           OR g.is_group AND g.grantee IN (
                  SELECT m.group_name FROM group_members AS m
                  WHERE m.member = current_setting('homer.viewer', true)))
    SELECT video_id FROM given WHERE video_id IS NOT NULL
    UNION
    SELECT v.id FROM given JOIN videos AS v
        ON starts_with(v.path, given.folder) AND position('/../' IN v.path) = 0
    UNION
    SELECT v.id FROM videos AS v
        WHERE EXISTS (SELECT 1 FROM given WHERE video_id IS NULL AND folder IS NULL)
$$
"""
HIDDEN_TRAJECTORIES = """
CREATE FUNCTION hidden_trajectories() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT v.trajectory_id FROM trajectory_videos AS v JOIN trajectories AS t
        ON t.id = v.trajectory_id AND t.viewer = current_setting('homer.viewer', true)
    WHERE v.video_id NOT IN (SELECT visible_videos())
$$
"""
"""The viewer's own questions of which a video may not be seen any more."""
HIDDEN_ACTS = """
CREATE FUNCTION hidden_acts() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT c.act FROM corrections AS c
    WHERE c.act IS NOT NULL AND c.video_id NOT IN (SELECT visible_videos())
$$
"""
"""Corrections of people in several videos name all of these.

What is hidden is read once for all rows of a statement; asked of each row, it took seconds.
"""


def upgrade() -> None:
    """Add the tables, the functions and the policies; the tables' owner is not subject to them."""
    op.create_table(
        "group_members",
        sa.Column("group_name", sa.Text(), primary_key=True),
        sa.Column("member", sa.Text(), primary_key=True),
    )
    video = sa.ForeignKey("videos.id", ondelete="CASCADE")
    op.create_table(
        "grants",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column("grantee", sa.Text(), nullable=False),
        sa.Column("is_group", sa.Boolean(), nullable=False),
        sa.Column("video_id", sa.Text(), video, nullable=True),
        sa.Column("folder", sa.Text(), nullable=True),
    )
    op.create_index("ix_grants_video_id", "grants", ["video_id"])
    time = sa.DateTime(timezone=True)
    since = sa.Column("since", time, primary_key=True, server_default=sa.func.now())
    op.create_table("enforced_rights", since)
    op.add_column("trajectories", sa.Column("viewer", sa.Text(), nullable=True))
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    for function in (VISIBLE, HIDDEN_TRAJECTORIES, HIDDEN_ACTS):
        op.execute(function.format(schema=schema))
    for table, condition in _conditions().items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY viewers ON {table} FOR SELECT USING ({condition})")
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


def downgrade() -> None:
    """Drop them."""
    for table in _conditions():
        op.execute(f"DROP POLICY viewers ON {table}")
    for table in (*_conditions(), *UNSEEN):
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    op.execute("DROP FUNCTION hidden_acts()")
    op.execute("DROP FUNCTION hidden_trajectories()")
    op.execute("DROP FUNCTION visible_videos()")
    op.drop_column("trajectories", "viewer")
    op.drop_table("enforced_rights")
    op.drop_table("grants")
    op.drop_table("group_members")
