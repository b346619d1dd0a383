"""Clips: their states, the memory view that follows from them, and what was perceived in each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    func,
    not_,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.media import Box, Clip, ClipState, Gap, GapReason, SeenObject, Video
from domain.memories import ClipMemories, MemoryView, Scope
from domain.time import TimeSpan
from store.queries.conditions import (
    MAX_ATTEMPTS,
    VIEW,
    Reader,
    is_any_text,
    is_left,
    is_waiting,
    reading_driver,
    view_parameters,
)
from store.queries.percepts import clip_state
from store.queries.videos import WATCHING
from store.tables.schema import (
    LOOKED_AT,
    ClipRow,
    IdentityRow,
    KeyframeRow,
    ObjectRow,
    ScreenTextRow,
    SightingRow,
    VideoRow,
)
from store.tables.videos import UNFINISHED

MOST_CLIPS = 2**31 - 1
"""A number that no clip reaches."""


class StoredClip(Frozen):
    """A clip and its state; ``attempts`` counts failures, ``seconds`` is the time it took.

    ``unwritten``: its lines are local, since its model failed. ``budget``: maximum tokens of its
    writer; ``left_out``: what was left out of its prompt for that; ``dropped``: what it wrote, or
    was to write, that could not be stored; ``gaps``: what of it is not in memory, and why.
    """

    index: int
    span: TimeSpan
    state: ClipState
    error: str | None
    attempts: int = 0
    seconds: float = 0.0
    budget: int | None = None
    left_out: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unwritten: bool = False


def clips_of(session: Session, video_id: str) -> list[StoredClip]:
    """Return all clips of a video, in order."""
    return _select_clips(session, ClipRow.video_id == video_id)


def clips_page(
    session: Session, video_id: str, offset: int, limit: int, last: int | None = None
) -> list[StoredClip]:
    """Return ``limit`` clips of a video from the ``offset``-th on, in order, up to ``last``."""
    return _select_clips(session, *_up_to(video_id, last), offset=offset, limit=limit)


def count_clips(session: Session, video_id: str, last: int | None = None) -> int:
    """Return the number of clips of a video, up to ``last``."""
    return session.scalar(select(func.count()).where(*_up_to(video_id, last))) or 0


def _up_to(video_id: str, last: int | None) -> list[ColumnElement[bool]]:
    of_video = ClipRow.video_id == video_id
    return [of_video] if last is None else [of_video, ClipRow.clip <= last]


def clip_at(session: Session, video_id: str, at_ms: int) -> int | None:
    """Return the clip at a moment, or None."""
    row = ClipRow
    at_moment = and_(row.video_id == video_id, row.start_ms <= at_ms, row.end_ms > at_ms)
    return session.scalar(select(row.clip).where(at_moment).order_by(row.clip).limit(1))


def end_of_memory(session: Session, video_id: str, clip: int | None = None) -> int:
    """Return when the last watched clip of a video, or up to ``clip``, ends; 0 ms without one."""
    query = select(func.max(ClipRow.end_ms)).where(ClipRow.video_id == video_id)
    query = query.where(ClipRow.state == ClipState.DONE)
    return session.scalar(query if clip is None else query.where(ClipRow.clip <= clip)) or 0


def next_clips(session: Session, video_id: str, *, again: bool = False) -> list[StoredClip]:
    """Return the clips that are still to be watched, or written by a model, in order.

    ``again``: also those that failed for good.
    """
    pending = ClipRow.state == ClipState.PENDING
    retriable = true() if again else ClipRow.attempts < MAX_ATTEMPTS
    retry = and_(or_(ClipRow.state == ClipState.FAILED, ClipRow.unwritten), retriable)
    return _select_clips(session, ClipRow.video_id == video_id, or_(pending, retry))


def failed_clips(session: Session, video_id: str, limit: int | None = None) -> list[StoredClip]:
    """Return the clips that failed, or wait for their model, in order, at most ``limit``."""
    return _select_clips(session, ClipRow.video_id == video_id, is_left(), limit=limit)


def first_unwritten(session: Session, video_id: str) -> int | None:
    """Return the first clip of a video that waits for its model; None where none does."""
    waiting = and_(ClipRow.video_id == video_id, is_waiting())
    return session.scalar(select(func.min(ClipRow.clip)).where(waiting))


def require_same_clips(session: Session, video: Video, clips: Sequence[Clip]) -> None:
    """Check that the rest of a known video can be watched in these clips.

    Raises:
        InputError: It was begun in clips of another length.
    """
    stored = [(clip.index, clip.span) for clip in clips_of(session, video.id)]
    wanted = [(clip.index, clip.span) for clip in clips]
    if stored != wanted and next_clips(session, video.id, again=True):
        raise InputError(
            f"{video.title} was begun in clips of another length: go on with the profile that it "
            f"was begun with, or delete it first (homer delete {video.id})"
        )


def mark_clip(
    session: Session,
    video_id: str,
    index: int,
    state: ClipState,
    error: str | None = None,
    text: str = "",
    embedding: Sequence[float] | None = None,
    *,
    unwritten: bool = False,
) -> None:
    """Set the state of a clip, with the text and vector that sum it up, shape (D,).

    The vector is the mean direction of those of its memories.

    A deleted clip is left unchanged.

    Raises:
        NotFound: The video has no such clip; it may just have been deleted.
    """
    values: dict[str, object] = {
        "state": str(state),
        "error": error,
        "text": text,
        "embedding": None if embedding is None else list(embedding),
        "attempts": ClipRow.attempts + int(state == ClipState.FAILED),
        "unwritten": unwritten,
        "updated_at": func.now(),
    }
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    not_deleted = ClipRow.state != ClipState.DELETED
    session.execute(update(ClipRow).where(this_clip, not_deleted).values(values))
    _require_clip(session, video_id, index)


def _require_clip(session: Session, video_id: str, index: int) -> None:
    if clip_state(session, video_id, index) is None:
        raise NotFound(f"video {video_id} has no clip {index}: was it deleted meanwhile?")


def fail_clip(
    session: Session, video_id: str, index: int, error: str, *, for_good: bool = False
) -> bool:
    """Note why a clip is left for another run; what is stored of it stays as it is.

    Return False if it is not: one that is done, other than by local lines, or deleted is unchanged.

    ``for_good``: no run tries again unless it is asked to.

    Raises:
        NotFound: The video has no such clip; it may just have been deleted.
    """
    values: dict[str, object] = {
        "state": case((ClipRow.unwritten, ClipRow.state), else_=str(ClipState.FAILED)),
        "error": error,
        "attempts": MAX_ATTEMPTS if for_good else ClipRow.attempts + 1,
        "updated_at": func.now(),
    }
    where = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    due = or_(text(UNFINISHED), ClipRow.unwritten)
    left = session.scalar(update(ClipRow).where(where, due).values(values).returning(ClipRow.clip))
    _require_clip(session, video_id, index)
    return left is not None


def last_attempt_at(session: Session, video_id: str, index: int) -> datetime | None:
    """Return when a clip was added or its last attempt ended; None if there is no such clip."""
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    return session.scalar(select(ClipRow.updated_at).where(this_clip))


def add_seconds(session: Session, video_id: str, index: int, seconds: float) -> None:
    """Add to the time that watching a clip took, whatever the result."""
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    session.execute(update(ClipRow).where(this_clip).values(seconds=ClipRow.seconds + seconds))


def record_writing(session: Session, video_id: str, index: int, written: ClipMemories) -> None:
    """Record how a model wrote a clip: budget, and what was left out and dropped."""
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    values = {
        "budget": written.budget,
        "left_out": list(written.left_out),
        "dropped": list(written.dropped),
    }
    session.execute(update(ClipRow).where(this_clip).values(values))


def memory_view(
    session: Session, video_ids: Sequence[str], as_of_ms: int | None = None
) -> MemoryView:
    """Return the memory view of a question: of each video the settled clips that ended by then.

    Raises:
        NotFound: There is no such video.
    """
    # A clip is settled when it and all before it are done, deleted, or failed for good. So a
    # question as of a moment sees the same whether or not more has been watched since.
    left_out = _unsettled() if as_of_ms is None else or_(_unsettled(), ClipRow.end_ms > as_of_ms)
    # Two probes of an index for each video: what they take depends on no statistics of the tables.
    of_video = ClipRow.video_id == VideoRow.id
    first_out = select(func.min(ClipRow.clip)).where(of_video, left_out).correlate(VideoRow)
    before = ClipRow.clip < func.coalesce(first_out.scalar_subquery(), MOST_CLIPS)
    latest = select(func.max(ClipRow.clip)).where(of_video, before).correlate(VideoRow)
    settled = func.coalesce(latest.scalar_subquery(), -1)
    rows = session.execute(
        select(VideoRow.id, settled).where(is_any_text(VideoRow.id, video_ids))
    ).all()
    last: dict[str, int] = dict(rows)
    for video_id in video_ids:
        if video_id not in last:
            raise NotFound(f"no video goes by {video_id!r}: `homer videos` lists them")
    scopes = tuple(Scope(video=v, last_clip=last[v]) for v in dict.fromkeys(video_ids))
    return MemoryView(scopes=scopes, as_of_ms=as_of_ms)


def _unsettled() -> ColumnElement[bool]:
    """Return the condition that a clip is neither done nor deleted, nor failed for good."""
    given_up = or_(ClipRow.attempts >= MAX_ATTEMPTS, VideoRow.state != WATCHING)
    failed_for_good = and_(ClipRow.state == ClipState.FAILED, given_up)
    return and_(text(UNFINISHED), not_(failed_for_good))


def _select_clips(
    session: Session, *conditions: ColumnElement[bool], offset: int = 0, limit: int | None = None
) -> list[StoredClip]:
    names = StoredClip.model_fields.keys() - {"index", "span"}
    columns = [ClipRow.clip.label("index"), *(getattr(ClipRow, name) for name in names)]
    query = select(ClipRow.start_ms, ClipRow.end_ms, *columns).where(*conditions)
    found = session.execute(query.order_by(ClipRow.clip).offset(offset).limit(limit)).mappings()
    clips = []
    for values in map(dict, found):
        span = TimeSpan.of(values.pop("start_ms"), values.pop("end_ms"))
        gaps = tuple(
            Gap(span=TimeSpan.of(start, end), reason=GapReason[reason.upper()])
            for start, end, reason in values.pop("gaps")
        )
        clips.append(StoredClip(**values, span=span, gaps=gaps))
    return clips


# One that waits for its model counts as failed: what is made of it would be made of local lines.
@dataclass(frozen=True)
class ClipStates:
    """The clips of a range, and of earlier uncovered ones, by state.

    ``highest`` is the last clip of the video, -1 for none; ``first_pending`` its first clip in or
    after the range that was not tried yet.
    """

    done: tuple[int, ...]
    failed: tuple[int, ...]
    first_pending: int | None
    highest: int


def clip_states(
    session: Session, video_id: str, start: int, stop: int, also: Sequence[int]
) -> ClipStates:
    of_video = ClipRow.video_id == video_id
    wanted = or_(and_(ClipRow.clip >= start, ClipRow.clip < stop), ClipRow.clip.in_(also))
    state = case((is_left(), str(ClipState.FAILED)), else_=ClipRow.state)
    query = select(ClipRow.clip, state).where(of_video, wanted).order_by(ClipRow.clip)
    states = session.execute(query).all()
    pending = of_video & (ClipRow.state == ClipState.PENDING) & (ClipRow.clip >= start)
    highest = session.scalar(select(func.max(ClipRow.clip)).where(of_video))
    return ClipStates(
        done=tuple(clip for clip, state in states if state == ClipState.DONE),
        failed=tuple(clip for clip, state in states if state == ClipState.FAILED),
        first_pending=session.scalar(select(func.min(ClipRow.clip)).where(pending)),
        highest=-1 if highest is None else highest,
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


# One statement fetches all of them: a search makes one round trip and reads one snapshot.
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
