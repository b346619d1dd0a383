"""The faces and voices of other videos that are most alike to given ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Literal
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.media import IdentityKind
from store.queries.conditions import is_any_text
from store.queries.encoders import vector_literal
from store.queries.hnsw import EXEMPLARS, has_index
from store.queries.view_conditions import reading_driver
from store.tables.schema import VideoRow

PORTS = {IdentityKind.FACE: "faces", IdentityKind.VOICE: "speaker"}
"""The port whose model makes the vectors of a kind, in ``videos.models``."""


class NearIdentity(NamedTuple):
    """An identity of another video near the query of that number."""

    query: int
    video: str
    identity: int


_NEAR = """
    WITH query AS MATERIALIZED (
        SELECT (ordinality - 1)::int AS number, vector::halfvec AS vector
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given (vector, ordinality))
    SELECT DISTINCT query.number, i.video_id, i.id
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
) -> list[NearIdentity]:
    """Return the identities of other videos with the nearest exemplars, in no order.

    Through the HNSW index, where a library has it, the search is approximate.

    Args:
        kind: Faces or voices.
        vectors: What is searched for, shape (N, D), each of length 1.
        but: The video that is left out.
        model: The model that made the vectors; those of others are left out.
        limit: The most exemplars for each vector, with those that are left out: conditions within
            the search would keep the database from using the index.
        min_cosine: The least cosine of such an exemplar.
    """
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
    return [NearIdentity(*row) for row in driver.execute(statement, parameters, prepare=False)]


def models_of_videos(session: Session, videos: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the models on record for each video: port -> name."""
    query = select(VideoRow.id, VideoRow.models).where(is_any_text(VideoRow.id, videos))
    return dict(session.execute(query).all())
