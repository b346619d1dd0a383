"""Clips: their processing states, and the memory view that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, func, not_, or_, select, text, true, update
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.media import Clip, ClipState, Video
from domain.memories import ClipMemories, MemoryView, Scope
from domain.streams import Gap, GapReason
from domain.time import TimeSpan
from store.queries.conditions import MAX_ATTEMPTS, is_any_text, is_left, is_waiting
from store.queries.percepts import clip_state
from store.queries.videos import WATCHING
from store.tables.schema import ClipRow, VideoRow
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

    A clip is settled when it and all before it are done, deleted, or failed for good. So a question
    as of a moment sees the same whether or not more has been watched since.

    Raises:
        NotFound: There is no such video.
    """
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


@dataclass(frozen=True)
class ClipStates:
    """The clips of a range, and of earlier uncovered ones, by state.

    One that waits for its model counts as failed: what is made of it would be made of local lines.

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
