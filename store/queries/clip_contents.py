"""Keyframes, screen texts, objects and sightings of clips, as of a clip.

One statement fetches all of them: a search makes one round trip and reads one snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ARRAY, JSON, Connection, Integer, Select, bindparam, func, select
from sqlalchemy.orm import Session

from domain.media import Box, SeenObject
from domain.memories import Scope
from store.queries.conditions import VIEW, Reader, reading_driver, view_parameters
from store.tables.schema import (
    LOOKED_AT,
    IdentityRow,
    KeyframeRow,
    ObjectRow,
    ScreenTextRow,
    SightingRow,
)


class KeyframeOnClip(NamedTuple):
    """A stored keyframe."""

    id: int
    clip: int
    time_ms: int
    quality: float
    blob: str
    description: str | None


class ClipContents(NamedTuple):
    """What was perceived in clips, in order of time.

    ``texts``: (time in ms, line read), in reading order; ``sightings``: (start, end in ms, kind,
    number) of every identity seen or heard.
    """

    frames: Sequence[KeyframeOnClip]
    texts: Sequence[tuple[int, str]]
    objects: Sequence[SeenObject]
    sightings: Sequence[tuple[int, int, str, int]]


KEYFRAMES = select(
    KeyframeRow.id,
    KeyframeRow.clip,
    KeyframeRow.time_ms,
    KeyframeRow.quality,
    KeyframeRow.blob,
    KeyframeRow.description,
)
"""The fields of every ``KeyframeOnClip``."""


def _on_clips(query: Select[*tuple[Any, ...]], row: Any, time: Any) -> Select[*tuple[Any, ...]]:
    """Choose rows of clips by ``time``; built once at import, since building is slow."""
    clips = bindparam("clips", type_=ARRAY(Integer))
    of_clips = query.where(row.video_id == bindparam("video"), row.clip == func.any(clips))
    return of_clips.order_by(time, row.id)


_FRAMES = _on_clips(KEYFRAMES, KeyframeRow, KeyframeRow.time_ms).where(
    KeyframeRow.shot != LOOKED_AT
)
_TEXTS = _on_clips(
    select(ScreenTextRow.time_ms, ScreenTextRow.text), ScreenTextRow, ScreenTextRow.time_ms
)
_OBJECTS = _on_clips(
    select(ObjectRow.time_ms, ObjectRow.label, ObjectRow.score, ObjectRow.box),
    ObjectRow,
    ObjectRow.time_ms,
)
_SIGHTINGS = _on_clips(
    select(SightingRow.start_ms, SightingRow.end_ms, IdentityRow.kind, IdentityRow.number).join(
        IdentityRow, IdentityRow.id == SightingRow.identity_id
    ),
    SightingRow,
    SightingRow.start_ms,
)


def _combine(queries: Iterable[Select[*tuple[Any, ...]]]) -> Select[*tuple[Any, ...]]:
    """Combine the rows of several queries in one row, with a list of lists for each."""
    rows = [query.subquery() for query in queries]
    lists = [func.json_agg(func.json_build_array(*subquery.c), type_=JSON) for subquery in rows]
    return select(*(select(subquery).scalar_subquery() for subquery in lists))


_ALL = _combine((_FRAMES, _TEXTS, _OBJECTS, _SIGHTINGS))


def _parameters(scope: Scope, clips: Collection[int]) -> dict[str, Any]:
    visible = sorted(clip for clip in clips if clip <= scope.last_clip)
    return {"video": scope.video, "clips": visible}


def clip_contents(
    connection: Connection | Session, scope: Scope, clips: Collection[int]
) -> ClipContents:
    """Return what was perceived in those of ``clips`` that are in ``scope``."""
    lists = connection.execute(_ALL, _parameters(scope, clips)).one()
    frames, texts, objects, sightings = (rows or [] for rows in lists)
    return ClipContents(
        frames=[KeyframeOnClip._make(row) for row in frames],
        texts=[(time, text) for time, text in texts],
        objects=[_object(*row) for row in objects],
        sightings=[(start, end, kind, number) for start, end, kind, number in sightings],
    )


def was_on_screen(session: Session, video_id: str, text: str, before_clip: int) -> bool:
    """Check whether a text was read on a keyframe of an earlier clip, in any case of letters."""
    query = select(ScreenTextRow.id).where(
        ScreenTextRow.video_id == video_id,
        ScreenTextRow.clip < before_clip,
        ScreenTextRow.text.icontains(text, autoescape=True),
    )
    return session.scalar(query.limit(1)) is not None


def objects_on(session: Session, scope: Scope, clips: Collection[int]) -> list[SeenObject]:
    """Return the objects seen in those of ``clips`` that are in ``scope``, in order of time."""
    return [_object(*row) for row in session.execute(_OBJECTS, _parameters(scope, clips))]


def _object(time_ms: int, label: str, score: float, box: Sequence[int]) -> SeenObject:
    x0, y0, x1, y1 = box
    return SeenObject(
        time_ms=time_ms, label=label, score=score, box=Box(x0=x0, y0=y0, x1=x1, y1=y1)
    )


def frame_vectors(
    connection: Connection | Session, frames: Iterable[int], *, described: bool = False
) -> dict[int, NDArray[np.float32]]:
    """Return the image vectors of keyframes that have one, (D,) each.

    ``described``: those of their descriptions instead.
    """
    of = KeyframeRow.description_embedding if described else KeyframeRow.embedding
    query = select(KeyframeRow.id, of).where(KeyframeRow.id.in_(sorted(frames)))
    rows = connection.execute(query.where(of.is_not(None)))
    return {frame: np.asarray(vector, dtype=np.float32) for frame, vector in rows}


_GAPS = f"""
    WITH {VIEW}
    SELECT view.number, c.clip FROM view CROSS JOIN LATERAL (
        SELECT clip, start_ms, end_ms, lag(end_ms) OVER (ORDER BY clip) AS previous_end_ms
        FROM clips WHERE video_id = view.video AND clip <= view.last_clip) AS c
    WHERE c.start_ms - c.previous_end_ms > (c.end_ms - c.start_ms) / 2
    ORDER BY view.number, c.clip
"""


def clips_after_gaps(database: Reader, scopes: Sequence[Scope]) -> list[tuple[int, int]]:
    """Return (number of the scope, clip) of clips that begin after a gap.

    A gap is more than half a clip without video.
    """
    rows = reading_driver(database).execute(_GAPS, view_parameters(scopes)).fetchall()
    return [(scope, clip) for scope, clip in rows]
