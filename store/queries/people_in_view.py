"""People in a view: speakers, lines that mention a person, and videos with a name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Literal
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from store.queries.conditions import (
    LINES_IN_VIEW,
    VIEW,
    Reader,
    is_any_text,
    reading_driver,
    view_parameters,
)
from store.queries.encoders import vector_literal
from store.tables.schema import VideoRow
from store.vector_index import EXEMPLARS, has_index

_SPEAKERS = f"""
    WITH {VIEW}
    SELECT m.speaker, count(*)::int FROM view
    JOIN memories AS m ON m.video_id = view.video AND m.clip <= view.last_clip
    WHERE m.speaker > '' GROUP BY m.speaker
"""


def speakers_in_view(database: Reader, scopes: Sequence[Scope]) -> dict[str, int]:
    """Return the number of lines in view by speaker."""
    rows = reading_driver(database).execute(_SPEAKERS, view_parameters(scopes)).fetchall()
    return dict(rows)


_TOGETHER = f"""
    WITH {VIEW}
    SELECT coalesce(max(frame.faces), 0)::int FROM (
        SELECT count(DISTINCT s.identity_id) AS faces FROM view
        JOIN sightings AS s ON s.video_id = view.video AND s.clip <= view.last_clip
        WHERE s.box IS NOT NULL GROUP BY s.video_id, s.start_ms) AS frame
"""


def faces_together(database: Reader, scopes: Sequence[Scope]) -> int:
    """Return how many people's faces are on one frame in view at most, whatever lines say so."""
    (most,) = reading_driver(database).execute(_TOGETHER, view_parameters(scopes)).fetchall()[0]
    return int(most)


_NAMES_OF_SPEAKERS = f"""
    WITH {VIEW}
    SELECT name FROM unnest(%(names)s::text[]) AS given (name) WHERE EXISTS (
        SELECT FROM {LINES_IN_VIEW} WHERE m.speaker = name)
"""


def names_of_speakers(database: Reader, scopes: Sequence[Scope], names: Sequence[str]) -> set[str]:
    """Return those of ``names`` that are the speaker of a line in view."""
    parameters = view_parameters(scopes) | {"names": list(names)}
    rows = reading_driver(database).execute(_NAMES_OF_SPEAKERS, parameters).fetchall()
    return {name for (name,) in rows}


class NearLine(NamedTuple):
    """A line near a vector: its id, number of its scope, its clip."""

    id: int
    video: int
    clip: int


_MENTIONS = """
    WITH {view}
    SELECT DISTINCT m.id, view.number, m.clip,
        1 - (m.embedding <=> %(vector)s::halfvec) AS cosine
    FROM {lines}
    JOIN memory_links AS l ON l.memory_id = m.id
    JOIN identities AS i ON i.id = l.identity_id
    WHERE vector_dims(m.embedding) = %(size)s
      AND (view.video, concat('<', i.kind, '_', i.number, '>')) IN (
          SELECT * FROM unnest(%(tag_videos)s::text[], %(tags)s::text[]))
      {clips}
    ORDER BY cosine DESC, m.id LIMIT %(limit)s
"""


def lines_mentioning(
    database: Reader,
    scopes: Sequence[Scope],
    tags: Mapping[str, Collection[str]],
    vector: NDArray[np.floating],
    limit: int,
    clips: Collection[int] | None = None,
) -> list[NearLine]:
    """Return the lines that mention an identity with one of these tags, nearest first.

    Args:
        tags: Tags such as ``<face_3>``, by video.
        vector: The query's unit vector, (D,).
        clips: Restrict to these clips; None: all clips in view.
    """
    pairs = [(video, tag) for video, video_tags in tags.items() for tag in sorted(video_tags)]
    statement = SQL(_MENTIONS).format(
        view=SQL(VIEW),
        lines=SQL(LINES_IN_VIEW),
        clips=SQL("" if clips is None else "AND m.clip = ANY(%(clips)s)"),
    )
    parameters = view_parameters(scopes) | {
        "tag_videos": [video for video, _ in pairs],
        "tags": [tag for _, tag in pairs],
        "limit": limit,
        "vector": vector_literal(vector),
        "size": len(vector),
        "clips": sorted(clips or ()),
    }
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    return [NearLine._make(row[:3]) for row in rows]


# The pattern takes longer than looking for the words in the middle of others, which few have.
_NAMING = """
    SELECT DISTINCT n.video_id FROM character_names AS n
    WHERE CASE WHEN lower(n.name) LIKE ANY(%(parts)s) THEN lower(n.name) ~ %(pattern)s END
"""


def videos_naming(database: Reader, scopes: Sequence[Scope], words: Collection[str]) -> set[str]:
    """Return the videos of a view in which a person has or had a name with one of these words.

    Words are of letters and digits, in lower case.
    """
    if not words:
        return set()
    pattern = f"(^|[^[:alnum:]])({'|'.join(sorted(words))})($|[^[:alnum:]])"
    parameters = {"pattern": pattern, "parts": [f"%{word}%" for word in words]}
    rows = reading_driver(database).execute(_NAMING, parameters).fetchall()
    # Few videos are found, and sending the ids of a whole view takes longer than finding them.
    named = {video for (video,) in rows}
    return {scope.video for scope in scopes if scope.video in named}


# The faces and voices of other videos that are most alike to given ones.

PORTS = {IdentityKind.FACE: "faces", IdentityKind.VOICE: "speaker"}
"""The port whose model makes the vectors of a kind, in ``videos.models``."""


_NEAR = """
    WITH query AS MATERIALIZED (
        SELECT vector::halfvec AS vector FROM unnest(%(vectors)s::text[]) AS given (vector))
    SELECT DISTINCT i.id, i.video_id
    FROM query CROSS JOIN LATERAL (
        SELECT e.identity_id, e.vector::halfvec({size}) <=> query.vector AS distance
        FROM exemplars AS e WHERE vector_dims(e.vector) = {size}
        ORDER BY e.vector::halfvec({size}) <=> query.vector LIMIT %(limit)s) AS near
    JOIN identities AS i ON i.id = near.identity_id JOIN videos AS v ON v.id = i.video_id
    WHERE near.distance <= %(distance)s AND i.kind = %(kind)s AND i.video_id <> %(but)s
          AND v.models ->> %(port)s IS NOT DISTINCT FROM %(model)s
"""
_SET_LIST = "SELECT set_config('hnsw.ef_search', %s, true)"


def nearest_identities(
    session: Session,
    kind: IdentityKind,
    vectors: NDArray[np.floating],
    but: str,
    model: str | None,
    limit: int,
    min_cosine: float,
) -> dict[int, str]:
    """Return the identities of other videos with the nearest exemplars, each with its video.

    Args:
        vectors: What is searched for, shape (N, D), each of length 1.
        model: The model that made the vectors; those of others are left out.
        limit: The most exemplars for each vector, with those that are left out: conditions within
            the search would keep the database from using the index.
        min_cosine: The least cosine of such an exemplar.
    """
    # Through the HNSW index, where a library has it, the search is approximate.
    size = vectors.shape[1]
    driver = reading_driver(session)
    if has_index(session, size, EXEMPLARS):
        driver.execute(_SET_LIST, (str(limit),))
    parameters = {
        "vectors": [vector_literal(vector) for vector in vectors],
        "kind": str(kind),
        "but": but,
        "port": PORTS[kind],
        "model": model,
        "limit": limit,
        "distance": 1 - min_cosine,
    }
    statement = SQL(_NEAR).format(size=Literal(size))
    return dict(driver.execute(statement, parameters, prepare=False))


def models_of_videos(session: Session, videos: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the models on record for each video: port -> name."""
    query = select(VideoRow.id, VideoRow.models).where(is_any_text(VideoRow.id, videos))
    return dict(session.execute(query).all())
