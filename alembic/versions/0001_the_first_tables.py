"""Create the first tables, those of store/tables/schema.py."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import HALFVEC, VECTOR
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    op.create_table(
        "messages",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("content", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "questions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("options", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("as_of_ms", sa.BigInteger(), nullable=True),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column(
            "asked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "videos",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("has_video", sa.Boolean(), nullable=False),
        sa.Column("has_audio", sa.Boolean(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column(
            "models",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="port -> model name",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "blobs",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("video_id", "sha256"),
    )
    op.create_index(op.f("ix_blobs_sha256"), "blobs", ["sha256"], unique=False)
    op.create_table(
        "characters",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("from_clip", sa.Integer(), nullable=False),
        sa.Column("to_clip", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("video_id", "number"),
    )
    op.create_table(
        "clips",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column(
            "gaps",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="[[start_ms, end_ms], ...]",
        ),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("embedding", HALFVEC(), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("video_id", "clip"),
    )
    op.create_table(
        "identities",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first_clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("video_id", "kind", "number"),
    )
    op.create_table(
        "patches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("at_clip", sa.Integer(), nullable=False),
        sa.Column("first_clip", sa.Integer(), nullable=False),
        sa.Column("repairs", sa.Integer(), nullable=False),
        sa.Column("applied", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("dropped", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "pending", sa.ARRAY(sa.BigInteger()), nullable=False, comment="clips left uncovered"
        ),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("video_id", "at_clip"),
    )
    op.create_table(
        "segments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("video_id", "number"),
    )
    op.create_table(
        "trajectories",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "character_members",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("character_id", sa.BigInteger(), nullable=False),
        sa.Column("identity_id", sa.BigInteger(), nullable=False),
        sa.Column("from_clip", sa.Integer(), nullable=False),
        sa.Column("to_clip", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["character_id"], ["characters.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["identity_id"], ["identities.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        op.f("ix_character_members_character_id"),
        "character_members",
        ["character_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_character_members_identity_id"), "character_members", ["identity_id"], unique=False
    )
    op.create_table(
        "character_names",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("character_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("from_clip", sa.Integer(), nullable=False),
        sa.Column("to_clip", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["character_id"], ["characters.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        op.f("ix_character_names_character_id"), "character_names", ["character_id"], unique=False
    )
    op.create_table(
        "edges",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.BigInteger(), nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("explicit", sa.Boolean(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("rationale", sa.Text(), nullable=False),
        sa.Column("evidence", sa.ARRAY(sa.BigInteger()), nullable=False, comment="clips"),
        sa.Column("from_clip", sa.Integer(), nullable=False),
        sa.Column("to_clip", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["segments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["target_id"], ["segments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("edges_of_video", "edges", ["video_id", "from_clip"], unique=False)
    op.create_index(op.f("ix_edges_source_id"), "edges", ["source_id"], unique=False)
    op.create_index(op.f("ix_edges_target_id"), "edges", ["target_id"], unique=False)
    op.create_table(
        "identity_statements",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.Column("face_id", sa.BigInteger(), nullable=False),
        sa.Column("voice_id", sa.BigInteger(), nullable=False),
        sa.Column("support", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["face_id"], ["identities.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["voice_id"], ["identities.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "keyframes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("shot", sa.Integer(), nullable=False),
        sa.Column("sharpness", sa.Double(), nullable=False),
        sa.Column("entropy", sa.Double(), nullable=False),
        sa.Column("quality", sa.Double(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("embedding", VECTOR(), nullable=True),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("keyframes_of_clip", "keyframes", ["video_id", "clip"], unique=False)
    op.create_table(
        "memories",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column(
            "superseded_at",
            sa.Integer(),
            nullable=True,
            comment="clip after which it is no more so",
        ),
        sa.Column("embedding", HALFVEC(), nullable=True),
        sa.Column(
            "words",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector('english', text)", persisted=True),
            nullable=False,
        ),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("memories_of_clip", "memories", ["video_id", "clip"], unique=False)
    op.create_index("memories_words", "memories", ["words"], unique=False, postgresql_using="gin")
    op.create_table(
        "model_calls",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("messages", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("reply", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("ms", sa.Integer(), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=True),
        sa.Column("clip", sa.Integer(), nullable=True),
        sa.Column("trajectory_id", sa.Text(), nullable=True),
        sa.Column(
            "called_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectories.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        op.f("ix_model_calls_trajectory_id"), "model_calls", ["trajectory_id"], unique=False
    )
    op.create_index(op.f("ix_model_calls_video_id"), "model_calls", ["video_id"], unique=False)
    op.create_index("model_calls_of_request", "model_calls", ["request_hash"], unique=False)
    op.create_table(
        "screen_texts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("box", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("screen_texts_of_clip", "screen_texts", ["video_id", "clip"], unique=False)
    op.create_table(
        "segment_revisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("segment_id", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("clips", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column(
            "history",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="summaries of absorbed segments",
        ),
        sa.Column("from_clip", sa.Integer(), nullable=False),
        sa.Column("to_clip", sa.Integer(), nullable=True),
        sa.Column("absorbed_into", sa.BigInteger(), nullable=True),
        sa.Column("embedding", HALFVEC(), nullable=True),
        sa.ForeignKeyConstraint(["absorbed_into"], ["segments.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["segment_id"], ["segments.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("segment_id", "revision"),
    )
    op.create_table(
        "sightings",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("identity_id", sa.BigInteger(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("box", sa.ARRAY(sa.BigInteger()), nullable=True),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("quality", sa.Double(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=True),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["identity_id"], ["identities.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_sightings_identity_id"), "sightings", ["identity_id"], unique=False)
    op.create_index("sightings_of_clip", "sightings", ["video_id", "clip"], unique=False)
    op.create_table(
        "trajectory_events",
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trajectory_id", "seq"),
    )
    op.create_table(
        "trajectory_videos",
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("last_clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["trajectory_id"], ["trajectories.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("trajectory_id", "video_id"),
    )
    op.create_index(
        op.f("ix_trajectory_videos_video_id"), "trajectory_videos", ["video_id"], unique=False
    )
    op.create_table(
        "utterances",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("identity_id", sa.BigInteger(), nullable=True),
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["identity_id"], ["identities.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["video_id", "clip"], ["clips.video_id", "clips.clip"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("utterances_of_clip", "utterances", ["video_id", "clip"], unique=False)
    op.create_table(
        "exemplars",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("identity_id", sa.BigInteger(), nullable=False),
        sa.Column("sighting_id", sa.BigInteger(), nullable=False),
        sa.Column("quality", sa.Double(), nullable=False),
        sa.Column("vector", VECTOR(), nullable=False),
        sa.ForeignKeyConstraint(["identity_id"], ["identities.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sighting_id"], ["sightings.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("sighting_id"),
    )
    op.create_index(op.f("ix_exemplars_identity_id"), "exemplars", ["identity_id"], unique=False)
    op.create_table(
        "memory_links",
        sa.Column("memory_id", sa.BigInteger(), nullable=False),
        sa.Column("identity_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["identity_id"], ["identities.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("memory_id", "identity_id"),
    )
    op.create_index(
        op.f("ix_memory_links_identity_id"), "memory_links", ["identity_id"], unique=False
    )
    op.create_table(
        "memory_strengths",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("memory_id", sa.BigInteger(), nullable=False),
        sa.Column("clip", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        op.f("ix_memory_strengths_memory_id"), "memory_strengths", ["memory_id"], unique=False
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_memory_strengths_memory_id"), table_name="memory_strengths")
    op.drop_table("memory_strengths")
    op.drop_index(op.f("ix_memory_links_identity_id"), table_name="memory_links")
    op.drop_table("memory_links")
    op.drop_index(op.f("ix_exemplars_identity_id"), table_name="exemplars")
    op.drop_table("exemplars")
    op.drop_index("utterances_of_clip", table_name="utterances")
    op.drop_table("utterances")
    op.drop_index(op.f("ix_trajectory_videos_video_id"), table_name="trajectory_videos")
    op.drop_table("trajectory_videos")
    op.drop_table("trajectory_events")
    op.drop_index("sightings_of_clip", table_name="sightings")
    op.drop_index(op.f("ix_sightings_identity_id"), table_name="sightings")
    op.drop_table("sightings")
    op.drop_table("segment_revisions")
    op.drop_index("screen_texts_of_clip", table_name="screen_texts")
    op.drop_table("screen_texts")
    op.drop_index("model_calls_of_request", table_name="model_calls")
    op.drop_index(op.f("ix_model_calls_video_id"), table_name="model_calls")
    op.drop_index(op.f("ix_model_calls_trajectory_id"), table_name="model_calls")
    op.drop_table("model_calls")
    op.drop_index("memories_words", table_name="memories", postgresql_using="gin")
    op.drop_index("memories_of_clip", table_name="memories")
    op.drop_table("memories")
    op.drop_index("keyframes_of_clip", table_name="keyframes")
    op.drop_table("keyframes")
    op.drop_table("identity_statements")
    op.drop_index(op.f("ix_edges_target_id"), table_name="edges")
    op.drop_index(op.f("ix_edges_source_id"), table_name="edges")
    op.drop_index("edges_of_video", table_name="edges")
    op.drop_table("edges")
    op.drop_index(op.f("ix_character_names_character_id"), table_name="character_names")
    op.drop_table("character_names")
    op.drop_index(op.f("ix_character_members_identity_id"), table_name="character_members")
    op.drop_index(op.f("ix_character_members_character_id"), table_name="character_members")
    op.drop_table("character_members")
    op.drop_table("trajectories")
    op.drop_table("segments")
    op.drop_table("patches")
    op.drop_table("identities")
    op.drop_table("clips")
    op.drop_table("characters")
    op.drop_index(op.f("ix_blobs_sha256"), table_name="blobs")
    op.drop_table("blobs")
    op.drop_table("videos")
    op.drop_table("questions")
    op.drop_table("messages")
