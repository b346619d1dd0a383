"""Which videos of a large view have the words of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.sql import SQL, Literal, Placeholder

from domain.memories import Scope
from store.queries.conditions import Reader, last_clip_of, reading_driver

FREQUENT = 2_000
"""Searches that more lines match are left out: they tell videos too little apart."""
_FREQUENCIES = """
    SELECT word, freq * c.reltuples
    FROM unnest(%(words)s::text[]) AS given (word)
    CROSS JOIN LATERAL tsvector_to_array(to_tsvector('english', word)) AS lexemes
    JOIN pg_stats AS s ON s.tablename = 'memories' AND s.attname = 'words'
    CROSS JOIN LATERAL unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
        AS common (lexeme, freq)
    JOIN pg_class AS c ON c.oid = 'memories'::regclass
    WHERE cardinality(lexemes) = 1 AND common.lexeme = lexemes[1]
"""


def frequent_words(database: Reader, words: Sequence[str]) -> set[str]:
    """Return those of these words that more than ``FREQUENT`` lines have, as Postgres estimates.

    It knows the most common words of a table since it was analysed last.
    """
    rows = reading_driver(database).execute(_FREQUENCIES, {"words": list(words)}).fetchall()
    return {word for word, lines in rows if lines > FREQUENT}


# The view is parsed once, however many searches there are.
_VIEW = "WITH view AS MATERIALIZED (SELECT %(last_clip_of)s::jsonb AS last_clips)"
_MATCHES = """
    (SELECT {number}, array_agg(found.video_id)
     FROM (SELECT m.video_id FROM memories AS m CROSS JOIN LATERAL (
               SELECT ((SELECT last_clips FROM view) ->> m.video_id)::int AS last_clip) AS scope
           WHERE words @@ ({query}) AND m.clip <= scope.last_clip
             AND (m.superseded_at IS NULL OR m.superseded_at > scope.last_clip)
           LIMIT %(limit)s) AS found)
"""


def videos_with_words(
    database: Reader, scopes: Sequence[Scope], searches: Sequence[Sequence[str]]
) -> dict[int, list[str]]:
    """Return the videos of the lines in view that have all words of a search, matched by stem.

    Args:
        database: A connection or session.
        searches: Words or phrases, at least one each.

    Returns:
        By the number of a search, the video of each line that it matches; without searches that
        more than ``FREQUENT`` lines in view match.
    """
    if not searches or not scopes:
        return {}
    parameters: dict[str, Any] = {"last_clip_of": last_clip_of(scopes), "limit": FREQUENT + 1}
    parts = []
    for number, words in enumerate(searches):
        names = [f"word{number}_{place}" for place in range(len(words))]
        parameters |= dict(zip(names, words, strict=True))
        query = SQL(" && ").join(
            SQL("phraseto_tsquery('english', {})").format(Placeholder(name)) for name in names
        )
        parts.append(SQL(_MATCHES).format(number=Literal(number), query=query))
    statement = SQL("{} {}").format(SQL(_VIEW), SQL(" UNION ALL ").join(parts))
    rows = reading_driver(database).execute(statement, parameters, prepare=False).fetchall()
    return {number: videos for number, videos in rows if videos and len(videos) <= FREQUENT}
