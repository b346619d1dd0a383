"""Keyframes by what they look like or show: the nearest to a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.memories import Scope
from store.queries.clip_contents import KeyframeOnClip
from store.queries.encoders import vector_literal
from store.queries.view_conditions import VIEW, Reader, reading_driver, view_parameters
from store.tables.schema import LOOKED_AT, FrameRow, KeyframeRow


class AlikeKeyframe(NamedTuple):
    """A keyframe of a video, and its cosine with the vector that was searched for."""

    video: str
    frame: KeyframeOnClip
    cosine: float


_ALIKE = """
    WITH {view}
    SELECT k.video_id, 1 - (k.{column} <=> %(vector)s::{vectors}) AS cosine,
           k.id, k.clip, k.time_ms, k.quality, k.blob, k.description
    FROM view JOIN keyframes AS k ON k.video_id = view.video AND k.clip <= view.last_clip
    WHERE k.shot <> {looked_at} AND vector_dims(k.{column}) = {size} AND k.id <> %(but)s
      AND (%(encoder)s = '' OR k.image_encoder = %(encoder)s)
    ORDER BY cosine DESC, view.number, k.time_ms, k.id LIMIT %(limit)s
"""


def keyframes_alike(
    database: Reader,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
    but: int = 0,
    encoder: str = "",
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that are nearest to a vector, best first.

    Args:
        database: A connection or session.
        vector: What is searched for, shape (D,), L2-normalised.
        limit: Keyframes at most.
        but: Id of a keyframe that is left out.
        encoder: The image-text model whose vectors are compared; "": those of what they look like.
    """
    column, vectors = ("embedding", "vector") if encoder else ("likeness_vector", "halfvec")
    statement = SQL(_ALIKE).format(
        view=SQL(VIEW),
        column=Identifier(column),
        vectors=Identifier(vectors),
        looked_at=Literal(LOOKED_AT),
        size=Literal(len(vector)),
    )
    parameters = view_parameters(scopes) | {
        "vector": vector_literal(vector),
        "limit": limit,
        "but": but,
        "encoder": encoder,
    }
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    return [
        AlikeKeyframe(video, KeyframeOnClip(*frame), float(cosine))
        for video, cosine, *frame in rows
    ]


def blob_of_image(session: Session, kind: str, number: int, scopes: Sequence[Scope]) -> str | None:
    """Return the SHA-256 of the JPEG of an image in view; None if there is no such image.

    Args:
        kind: ``k`` for a keyframe, ``f`` for a kept frame.
    """
    row = FrameRow if kind == "f" else KeyframeRow
    found = session.execute(select(row.blob, row.video_id, row.clip).where(row.id == number))
    last = {scope.video: scope.last_clip for scope in scopes}
    return next((blob for blob, video, clip in found if clip <= last.get(video, -1)), None)
