"""Keyframes for display: the one nearest to a moment, those of some clips."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import Select, Text, and_, cast, func, insert, select, text, update
from sqlalchemy import delete as remove
from sqlalchemy.orm import Session

from domain.memories import Scope
from store.queries.clip_contents import KEYFRAMES, KeyframeOnClip
from store.queries.conditions import VIEW, Reader, reading_driver, view_parameters
from store.queries.encoders import vector_literal
from store.queries.percepts import add_blobs
from store.queries.videos import WATCHING
from store.tables.schema import (
    LOOKED_AT,
    BlobRow,
    ClipRow,
    FrameRow,
    KeyframeRow,
    SightingRow,
    StreamRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    VideoRow,
)


def frame_near(
    session: Session, video_id: str, at_ms: int, clips: Sequence[int]
) -> KeyframeOnClip | None:
    """Return the keyframe in ``clips`` nearest to a moment, the earlier of two."""
    row = KeyframeRow
    query = KEYFRAMES.where(row.video_id == video_id, row.clip.in_(clips))
    return _first(session, query.order_by(func.abs(row.time_ms - at_ms), row.time_ms, row.id))


def frame_of(session: Session, video_id: str, frame_id: int) -> KeyframeOnClip | None:
    row = KeyframeRow
    of_video = and_(row.video_id == video_id, row.id == frame_id)
    return _first(session, KEYFRAMES.where(of_video))


def _first(session: Session, query: Select[*tuple[Any, ...]]) -> KeyframeOnClip | None:
    fields = session.execute(query.limit(1)).first()
    return KeyframeOnClip._make(fields) if fields else None


def frames_of(session: Session, video_id: str, clips: Sequence[int]) -> list[KeyframeOnClip]:
    """Return the keyframes of some clips, in order of time."""
    row = KeyframeRow
    query = KEYFRAMES.where(row.video_id == video_id, row.clip.in_(clips))
    return [
        KeyframeOnClip._make(fields)
        for fields in session.execute(query.order_by(row.time_ms, row.id))
    ]


_IMAGE = re.compile(r"(?<!\w)(?:[kf][1-9]\d{0,17}|[0-9a-f]{64})(?!\w)")


class StoredFrame(NamedTuple):
    """A keyframe; ``bytes`` is the size of its image, ``id`` is 0 before it is stored."""

    id: int
    clip: int
    time_ms: int
    quality: float
    width: int
    height: int
    blob: str
    bytes: int


def videos_by_age(session: Session) -> list[tuple[str, str, datetime]]:
    """Return id, title and age of every video that is not being watched, oldest first.

    A stream is as old as its last clip, since it can be resumed under its name.
    """
    row = VideoRow
    streamed = select(StreamRow.video_id).where(StreamRow.video_id == row.id).exists()
    last_clip = select(func.max(ClipRow.updated_at)).where(ClipRow.video_id == row.id, streamed)
    since = func.greatest(row.created_at, last_clip.scalar_subquery()).label("since")
    query = select(row.id, row.title, since).where(row.state != WATCHING)
    found = session.execute(query.order_by(since, row.id))
    return [(video, title, at) for video, title, at in found]


def stored_frames(session: Session, video: str) -> list[StoredFrame]:
    """Return the keyframes of a video by clip, the best first."""
    row, blob = KeyframeRow, BlobRow
    size = select(blob.size).where(blob.video_id == video, blob.sha256 == row.blob)
    size_or_zero = func.coalesce(size.correlate(row).scalar_subquery(), 0)
    query = select(
        row.id, row.clip, row.time_ms, row.quality, row.width, row.height, row.blob, size_or_zero
    ).where(row.video_id == video)
    found = session.execute(query.order_by(row.clip, row.quality.desc(), row.id))
    return [StoredFrame._make(fields) for fields in found]


def images_in_answers(session: Session, video: str) -> set[str]:
    """Return images that answers about the video saw or cite: refs, and SHA-256."""
    trajectories = select(TrajectoryVideoRow.trajectory_id).where(
        TrajectoryVideoRow.video_id == video
    )
    event, run = TrajectoryEventRow, TrajectoryRow
    queries = (
        select(cast(event.payload, Text)).where(event.trajectory_id.in_(trajectories)),
        select(cast(run.answer, Text)).where(run.id.in_(trajectories), run.answer.is_not(None)),
    )
    refs: set[str] = set()
    for query in queries:
        for line in session.scalars(query.execution_options(yield_per=200)):
            refs.update(_IMAGE.findall(line))
    return refs


def face_crops(session: Session, video: str) -> dict[str, int]:
    """Return the face crops of a video with their sizes in bytes."""
    sighting, blob = SightingRow, BlobRow
    crops = select(sighting.blob).where(sighting.video_id == video, sighting.blob.is_not(None))
    query = select(blob.sha256, blob.size).where(blob.video_id == video, blob.sha256.in_(crops))
    return dict(session.execute(query).all())


def delete_frames(session: Session, ids: Collection[int]) -> None:
    """Delete keyframes; the texts read and objects seen on them stay."""
    session.execute(remove(KeyframeRow).where(KeyframeRow.id.in_(ids)))


def remove_crops(session: Session, video: str) -> None:
    """Remove the images of sightings."""
    with_crop = and_(SightingRow.video_id == video, SightingRow.blob.is_not(None))
    session.execute(update(SightingRow).where(with_crop).values(blob=None))


def replace_frame(
    session: Session, video: str, frame: StoredFrame, blob: str, width: int, height: int
) -> None:
    """Replace a keyframe's image by one of another size, scaling the boxes on it."""
    this_frame = update(KeyframeRow).where(KeyframeRow.id == frame.id)
    session.execute(this_frame.values(blob=blob, width=width, height=height))
    scaled_box = "SELECT round(x * :by)\\:\\:bigint FROM unnest(box) WITH ORDINALITY AS u (x, n)"
    scaled = f"ARRAY({scaled_box} ORDER BY n)"
    parameters = {"by": width / frame.width, "video": video, "at": frame.time_ms}
    for table in ("objects", "screen_texts"):
        statement = f"UPDATE {table} SET box = {scaled} WHERE video_id = :video AND time_ms = :at"
        session.execute(text(statement), parameters)


# Keyframes by what they look like or show: the nearest to a vector.


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
    ORDER BY cosine DESC, view.number, k.time_ms, k.id LIMIT %(limit)s
"""


def keyframes_alike(
    database: Reader,
    scopes: Sequence[Scope],
    vector: NDArray[np.floating],
    limit: int,
    but: int = 0,
    *,
    shown: bool = False,
) -> list[AlikeKeyframe]:
    """Return the keyframes in view that are nearest to a vector, best first.

    Args:
        vector: What is searched for, shape (D,), L2-normalised.
        but: Id of a keyframe that is left out.
        shown: Vectors of the library's image-text model are compared, not what they look like.
    """
    column, vectors = ("embedding", "vector") if shown else ("likeness_vector", "halfvec")
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
    }
    rows = reading_driver(database).execute(statement, parameters).fetchall()
    return [
        AlikeKeyframe(video, KeyframeOnClip._make(frame), float(cosine))
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


# Frames that a question had decoded, stored beside the keyframes that watching chose.
#
# They have refs like keyframes, go with their clip, and are forgotten, exported and backed up like
# them; searches that rank keyframes and dumps leave them out, so that asking changes neither.


def add_looked_frames(
    session: Session, video: str, frames: Iterable[StoredFrame]
) -> list[KeyframeOnClip]:
    """Store frames of a video, each once, and return them as they are stored, in their order."""
    wanted = list(frames)
    add_blobs(session, video, {frame.blob: frame.bytes for frame in wanted})
    stored, row = list[KeyframeOnClip](), KeyframeRow
    for frame in wanted:
        place = and_(row.video_id == video, row.clip == frame.clip, row.time_ms == frame.time_ms)
        known = _first(session, KEYFRAMES.where(place, row.blob == frame.blob).order_by(row.id))
        if known is None:
            values: dict[str, Any] = {
                "video_id": video,
                "clip": frame.clip,
                "time_ms": frame.time_ms,
                "shot": LOOKED_AT,
                "width": frame.width,
                "height": frame.height,
                "blob": frame.blob,
            }
            unmeasured = dict.fromkeys(("sharpness", "entropy", "quality"), 0.0)
            added = insert(row).values(values | unmeasured).returning(row.id)
            number = session.execute(added).scalar_one()
            known = KeyframeOnClip(number, frame.clip, frame.time_ms, 0.0, frame.blob, None)
        stored.append(known)
    return stored
