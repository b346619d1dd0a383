"""Add full text by words, tags and speakers, in place of Homer's own search indexes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# A tag such as <face_3> is one word, and so is each character of a script without spaces: both ends
# of a search (``retrieval.terms.database_words``) must agree.
_SEARCH_WORDS = r"""
CREATE FUNCTION search_words(line text, speaker text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('english', regexp_replace(
        regexp_replace(coalesce(speaker || ': ', '') || line,
                       '<(face|voice|character)_(\d+)>', ' \1\2 ', 'g'),
        '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'))
$$
"""
_VIDEO_REWRITTEN = """
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


def upgrade() -> None:
    op.execute("DROP TRIGGER search_index_goes ON videos")
    op.execute("DROP FUNCTION search_index_goes()")
    op.drop_table("search_indexes")
    # The column stays, since exports and back-ups of older libraries have it.
    op.execute("DROP TRIGGER video_rewritten ON videos")
    op.execute("DROP FUNCTION video_rewritten()")
    op.execute("COMMENT ON COLUMN videos.rewritten IS 'not used since 0016'")
    op.execute(_SEARCH_WORDS)
    _words("search_words(text, speaker)")
    op.create_index(
        "memories_of_speaker",
        "memories",
        ["video_id", "speaker", "clip"],
        postgresql_where=sa.text("speaker IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("memories_of_speaker", "memories")
    _words("to_tsvector('english', text)")
    op.execute("DROP FUNCTION search_words(text, text)")
    op.execute(_VIDEO_REWRITTEN)
    op.execute(
        "CREATE TRIGGER video_rewritten BEFORE INSERT OR UPDATE ON videos "
        "FOR EACH ROW EXECUTE FUNCTION video_rewritten()"
    )
    op.create_table(
        "search_indexes",
        sa.Column("video_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("through", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["video_id"], ["videos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("video_id"),
    )
    op.execute("ALTER TABLE search_indexes ALTER COLUMN body SET STORAGE EXTERNAL")
    op.execute(
        "CREATE FUNCTION search_index_goes() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN DELETE FROM search_indexes WHERE video_id = OLD.id; RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER search_index_goes AFTER UPDATE ON videos FOR EACH ROW "
        "WHEN (OLD.rewritten IS DISTINCT FROM NEW.rewritten) "
        "EXECUTE FUNCTION search_index_goes()"
    )


def _words(expression: str) -> None:
    """Compute the words of memories anew; the table is written once over."""
    op.drop_index("memories_words", "memories")
    op.drop_column("memories", "words")
    op.add_column(
        "memories",
        sa.Column(
            "words",
            sa.dialects.postgresql.TSVECTOR(),
            sa.Computed(expression, persisted=True),
        ),
    )
    op.create_index("memories_words", "memories", ["words"], postgresql_using="gin")
