"""Keyframes by what they look like: the most alike to a vector, and those without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Literal
from sqlalchemy import select, update
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


class UnmeasuredKeyframe(NamedTuple):
    """A keyframe without a vector; ``blob`` is the SHA-256 of its JPEG."""

    id: int
    blob: str


_ALIKE = """
    WITH {view}
    SELECT k.video_id, 1 - (k.likeness_vector <=> %(vector)s::halfvec) AS cosine,
           k.id, k.clip, k.time_ms, k.quality, k.blob, k.description
    FROM view JOIN keyframes AS k ON k.video_id = view.video AND k.clip <= view.last_clip
    WHERE k.shot <> {looked_at} AND vector_dims(k.likeness_vector) = {size} AND k.id <> %(but)s
    ORDER BY cosine DESC, view.number, k.time_ms, k.id LIMIT %(limit)s
"""
_UNMEASURED = """
    WITH {view}
    SELECT k.id, k.blob, count(*) OVER ()
    FROM view JOIN keyframes AS k ON k.video_id = view.video AND k.clip <= view.last_clip
    WHERE k.shot <> {looked_at} AND k.likeness_vector IS NULL
    ORDER BY view.number, k.time_ms, k.id LIMIT %(limit)s
"""


def keyframes_alike(
    database: Reader,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
    but: int = 0,
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that look most alike, best first.

    Args:
        database: A connection or session.
        scopes: The view.
        vector: What is searched for, shape (D,), L2-normalised.
        limit: Keyframes at most.
        but: Id of a keyframe that is left out.
    """
    statement = SQL(_ALIKE).format(
        view=SQL(VIEW), looked_at=Literal(LOOKED_AT), size=Literal(len(vector))
    )
    parameters = view_parameters(scopes) | {
        "vector": vector_literal(vector),
        "limit": limit,
        "but": but,
    }
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    return [
        AlikeKeyframe(video, KeyframeOnClip(*frame), float(cosine))
        for video, cosine, *frame in rows
    ]


def unmeasured_keyframes(
    database: Reader, scopes: Sequence[Scope], limit: int
) -> tuple[list[UnmeasuredKeyframe], int]:
    """Return keyframes in view without a vector, the earliest first, and how many there are."""
    statement = SQL(_UNMEASURED).format(view=SQL(VIEW), looked_at=Literal(LOOKED_AT))
    parameters = view_parameters(scopes) | {"limit": limit}
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    total = rows[0][2] if rows else 0
    return [UnmeasuredKeyframe(frame, blob) for frame, blob, _ in rows], total


def set_likeness(
    session: Session, vectors: Mapping[UnmeasuredKeyframe, NDArray[np.floating]]
) -> None:
    """Store the vectors of keyframes that still have the same image."""
    row = KeyframeRow
    for frame, vector in vectors.items():
        same = (row.id == frame.id, row.blob == frame.blob)
        session.execute(update(row).where(*same).values(likeness_vector=vector.tolist()))


def blob_of_image(session: Session, kind: str, number: int, scopes: Sequence[Scope]) -> str | None:
    """Return the SHA-256 of the JPEG of an image in view; None if there is no such image.

    Args:
        session: the session.
        kind: ``k`` for a keyframe, ``f`` for a kept frame.
        number: its row.
        scopes: what is in view.
    """
    row = FrameRow if kind == "f" else KeyframeRow
    found = session.execute(select(row.blob, row.video_id, row.clip).where(row.id == number))
    last = {scope.video: scope.last_clip for scope in scopes}
    return next((blob for blob, video, clip in found if clip <= last.get(video, -1)), None)
