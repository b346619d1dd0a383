"""Stored images of a video: keyframes, frames that a question looked at, and those of keepers.

What a keeper keeps outlives its clip; what it carries from clip to clip is stored with it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    Text,
    and_,
    cast,
    delete,
    func,
    literal,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from domain.built import BuiltFrame, Carried, KeptClip
from domain.media import ClipState
from domain.memories import Scope
from domain.time import TimeSpan
from store.driver import unpack_halfvecs
from store.queries.blobs import delete_unnamed_blob_rows
from store.queries.clips import KEYFRAMES, KeyframeOnClip
from store.queries.conditions import VIEW, Reader, reading_driver, view_parameters
from store.queries.encoders import vector_literal
from store.queries.percepts import add_blobs
from store.tables.schema import (
    LOOKED_AT,
    BlobRow,
    ClipRow,
    FrameRow,
    KeeperRow,
    KeyframeRow,
    SightingRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
)

if TYPE_CHECKING:
    from domain.built import Vector


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


def stored_frames(session: Session, video: str) -> list[StoredFrame]:
    """Return the keyframes of a video by clip, the best first."""
    row = KeyframeRow
    query = _with_sizes(row, video, row.quality)
    found = session.execute(query.order_by(row.clip, row.quality.desc(), row.id))
    return [StoredFrame._make(fields) for fields in found]


def kept_images(session: Session, video: str) -> list[StoredFrame]:
    """Return the kept frames of a video by clip, in order of time; none has a quality."""
    query = _with_sizes(FrameRow, video, literal(0.0))
    found = session.execute(query.order_by(FrameRow.clip, FrameRow.time_ms))
    return [StoredFrame._make(fields) for fields in found]


def _with_sizes(
    row: Any, video: str, quality: SQLColumnExpression[float]
) -> Select[*tuple[Any, ...]]:
    blob = BlobRow
    size = select(blob.size).where(blob.video_id == video, blob.sha256 == row.blob)
    size_or_zero = func.coalesce(size.correlate(row).scalar_subquery(), 0)
    return select(
        row.id, row.clip, row.time_ms, quality, row.width, row.height, row.blob, size_or_zero
    ).where(row.video_id == video)


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
    session.execute(delete(KeyframeRow).where(KeyframeRow.id.in_(ids)))


def remove_crops(session: Session, video: str) -> None:
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


FRAMES = select(
    FrameRow.id,
    FrameRow.builder,
    FrameRow.clip,
    FrameRow.time_ms,
    FrameRow.blob,
    FrameRow.tier,
    FrameRow.reason,
)
"""The fields of every ``BuiltFrame``."""


def carried_by(session: Session, video_id: str, builders: Collection[str]) -> dict[str, Carried]:
    """Return what these keepers carried on after the last clip that they saw of a video."""
    row = KeeperRow
    query = select(row.builder, row.version, row.through_clip, row.state)
    found = session.execute(query.where(row.video_id == video_id, row.builder.in_(builders)))
    return {builder: Carried(version, clip, state) for builder, version, clip, state in found}


def has_done_between(session: Session, video_id: str, after: int, before: int) -> bool:
    """Check whether a clip between two others was watched."""
    row = ClipRow
    where = and_(row.video_id == video_id, row.clip > after, row.clip < before)
    done = select(row.clip).where(where, row.state == ClipState.DONE)
    return session.scalar(done.limit(1)) is not None


def blobs_at(
    session: Session, video_id: str, builder: str, times_ms: Collection[int]
) -> dict[int, str]:
    """Return the SHA-256 of the JPEGs of a keeper's frames at these times, of those that it has."""
    if not times_ms:
        return {}
    row = FrameRow
    of_keeper = and_(row.video_id == video_id, row.builder == builder)
    query = select(row.time_ms, row.blob).where(of_keeper, row.time_ms.in_(times_ms))
    return {found.time_ms: found.blob for found in session.execute(query)}


def frames_of_clips(
    session: Session, video_id: str, builder: str, clips: Collection[int]
) -> list[BuiltFrame]:
    """Return the frames that a strategy keeps of these clips, in order of time."""
    row = FrameRow
    of_keeper = and_(row.video_id == video_id, row.builder == builder)
    return _frames(session, of_keeper, row.clip.in_(clips))


def frames_in_scope(
    session: Session, scope: Scope, builder: str, span: TimeSpan | None = None
) -> list[BuiltFrame]:
    """Return the frames that a strategy keeps of a video, or of a span, in order of time."""
    time = FrameRow.time_ms
    within = true() if span is None else and_(time >= span.start_ms, time < span.end_ms)
    return _frames(session, *_in_scope(scope, builder), within)


def _frames(session: Session, *conditions: ColumnElement[bool]) -> list[BuiltFrame]:
    query = FRAMES.where(*conditions).order_by(FrameRow.time_ms)
    return [BuiltFrame._make(columns) for columns in session.execute(query)]


def vector_of_frame(session: Session, frame: int) -> tuple[str, Vector] | None:
    """Return what made the vector of a frame, and the vector; None if it has none."""
    row = FrameRow
    columns = select(row.image_encoder, func.halfvec_send(row.embedding))
    found = session.execute(columns.where(row.id == frame, row.embedding.is_not(None))).first()
    return None if found is None else (found[0], unpack_halfvecs([found[1]])[0])


def vectors_of_frames(
    session: Session, scope: Scope, builder: str
) -> list[tuple[BuiltFrame, str, Vector]]:
    """Return the frames of a video with a vector, (D,): each with the model that made it."""
    row = FrameRow
    query = FRAMES.add_columns(row.image_encoder, func.halfvec_send(row.embedding))
    with_vector = and_(row.embedding.is_not(None), row.image_encoder.is_not(None))
    found = session.execute(
        query.where(*_in_scope(scope, builder), with_vector).order_by(row.time_ms)
    ).all()
    vectors = unpack_halfvecs(columns[-1] for columns in found)
    return [
        (BuiltFrame._make(columns), encoder, vector)
        for (*columns, encoder, _), vector in zip(found, vectors, strict=True)
    ]


def _in_scope(scope: Scope, builder: str) -> tuple[ColumnElement[bool], ...]:
    row = FrameRow
    return row.video_id == scope.video, row.builder == builder, row.clip <= scope.last_clip


def store_kept(session: Session, video_id: str, kept: KeptClip) -> list[str]:
    """Store what a keeper made of a clip, and how far it went.

    The files of its frames must be stored already, under ``lock_blobs_shared``.

    Returns:
        SHA-256 of the files of dropped and changed frames that no video uses any more.
    """
    of_keeper = {"video_id": video_id, "builder": kept.builder}
    row = FrameRow
    again = [frame.time_ms for frame in kept.frames]
    old = and_(row.video_id == video_id, row.builder == kept.builder)
    gone = delete(row).where(old, row.time_ms.in_([*kept.dropped, *again])).returning(row.blob)
    blobs = set(session.scalars(gone))
    add_blobs(session, video_id, {sha: len(data) for sha, data in kept.jpegs.items()})
    values = [
        {
            **of_keeper,
            "clip": kept.clip,
            "time_ms": frame.time_ms,
            "blob": frame.blob,
            "width": frame.width,
            "height": frame.height,
            "tier": frame.tier,
            "reason": frame.reason,
            "image_encoder": frame.image_encoder,
            "embedding": None if frame.vector is None else frame.vector.tolist(),
        }
        for frame in kept.frames
    ]
    if values:
        session.execute(insert(row), values)
    for changed in kept.changed:
        fields = {"reason": changed.reason, "tier": changed.tier}
        new: dict[str, Any] = {name: field for name, field in fields.items() if field is not None}
        if changed.image is not None:
            new |= vars(changed.image)
        if new:
            at = row.time_ms == changed.time_ms
            session.execute(update(row).where(old, at).values(new))
    blobs |= {one.before for one in kept.changed if one.image is not None}
    went = {"version": kept.version, "through_clip": kept.clip, "state": dict(kept.state)}
    added = insert(KeeperRow).values(**of_keeper, **went)
    session.execute(added.on_conflict_do_update(index_elements=["video_id", "builder"], set_=went))
    return delete_unnamed_blob_rows(session, video_id, blobs) if blobs else []


def kept_frame(session: Session, video_id: str, number: int) -> BuiltFrame | None:
    found = _frames(session, FrameRow.video_id == video_id, FrameRow.id == number)
    return found[0] if found else None


def cited_kept(session: Session, scope: Scope, ids: Collection[int]) -> list[BuiltFrame]:
    row = FrameRow
    in_scope = and_(row.video_id == scope.video, row.clip <= scope.last_clip)
    return _frames(session, in_scope, row.id.in_(sorted(ids)))


def has_kept(session: Session, scope: Scope, builder: str) -> bool:
    """Check whether a strategy keeps any frame of a video."""
    query = select(FrameRow.id).where(*_in_scope(scope, builder)).limit(1)
    return session.scalar(query) is not None


def delete_kept(session: Session, ids: Collection[int]) -> None:
    session.execute(delete(FrameRow).where(FrameRow.id.in_(ids)))


def replace_kept(session: Session, frame: int, blob: str, width: int, height: int) -> None:
    """Replace a kept frame's image by one of another size."""
    changed = {"blob": blob, "width": width, "height": height}
    session.execute(update(FrameRow).where(FrameRow.id == frame).values(changed))


# The kept frames of a video by tier: how many there are, their bytes, and some of each.


class TierTotal(NamedTuple):
    """The frames that a keeper has in a tier: how many, their bytes, the first and last time."""

    builder: str
    tier: int
    frames: int
    bytes: int
    first_ms: int
    last_ms: int


def tier_totals(session: Session, video_id: str) -> list[TierTotal]:
    """Return the totals of each keeper's tiers, from the youngest tier on."""
    row, blob = FrameRow, BlobRow
    size, first, last = func.sum(blob.size), func.min(row.time_ms), func.max(row.time_ms)
    query = select(
        row.builder, row.tier, func.count(), func.coalesce(size, 0), first, last
    ).outerjoin(blob, and_(blob.video_id == row.video_id, blob.sha256 == row.blob))
    of_video = query.where(row.video_id == video_id).group_by(row.builder, row.tier)
    rows = session.execute(of_video.order_by(row.builder, row.tier))
    return [TierTotal(name, tier, n, int(total), a, b) for name, tier, n, total, a, b in rows]


def spread_of_tiers(
    session: Session, video_id: str, most: int
) -> dict[tuple[str, int], dict[int, str]]:
    """Return at most so many frames of each builder's tiers, evenly spread, in order of time.

    The last frame of a tier is among them. A frame is its time and the SHA-256 of its JPEG.
    """
    row = FrameRow
    of_tier = (row.builder, row.tier)
    part = func.ntile(most).over(partition_by=of_tier, order_by=row.time_ms).label("part")
    parts = select(*of_tier, row.time_ms, row.blob, part).where(row.video_id == video_id).subquery()
    kept = parts.c
    last = select(kept.builder, kept.tier, kept.time_ms, kept.blob)
    last = last.ext(distinct_on(kept.builder, kept.tier, kept.part))
    rows = session.execute(last.order_by(kept.builder, kept.tier, kept.part, kept.time_ms.desc()))
    frames = defaultdict[tuple[str, int], dict[int, str]](dict)
    for builder, tier, time_ms, sha in rows:
        frames[builder, tier][time_ms] = sha
    return frames
