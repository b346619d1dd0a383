"""Clips: their processing states, and the memory view that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, func, not_, or_, select, text, true, update
from sqlalchemy.orm import Session

from domain.errors import InputError, NotFound
from domain.media import Clip, ClipState, Video
from domain.memories import ClipMemories, MemoryView, Scope
from domain.streams import Gap, GapReason
from domain.time import TimeSpan
from store.queries.conditions import is_any_text
from store.queries.videos import WATCHING
from store.tables.schema import ClipRow, VideoRow
from store.tables.videos import UNFINISHED

MAX_ATTEMPTS = 3
"""A clip that failed this often is not retried, unless explicitly requested."""
MOST_CLIPS = 2**31 - 1
"""A number that no clip reaches."""


@dataclass(frozen=True, slots=True)
class StoredClip:
    """A clip and its state; ``attempts`` counts failures, ``seconds`` is the time it took.

    ``budget``: maximum tokens of its writer; ``left_out``: what was left out of its prompt for
    that; ``dropped``: what it wrote, or was to write, that could not be stored.
    """

    index: int
    span: TimeSpan
    state: ClipState
    error: str | None
    attempts: int
    seconds: float = 0.0
    budget: int | None = None
    left_out: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


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
    at_moment = (row.video_id == video_id, row.start_ms <= at_ms, row.end_ms > at_ms)
    return session.scalar(select(row.clip).where(*at_moment).order_by(row.clip).limit(1))


def end_of_memory(session: Session, video_id: str) -> int:
    """Return when the last watched clip of a video ends, in milliseconds; 0 without one."""
    done = (ClipRow.video_id == video_id, ClipRow.state == ClipState.DONE)
    return session.scalar(select(func.max(ClipRow.end_ms)).where(*done)) or 0


def next_clips(session: Session, video_id: str, *, again: bool = False) -> list[StoredClip]:
    """Return the clips that are still to be watched, in order.

    Args:
        again: Include those that failed for good.
    """
    pending = ClipRow.state == ClipState.PENDING
    retriable = true() if again else ClipRow.attempts < MAX_ATTEMPTS
    retry = and_(ClipRow.state == ClipState.FAILED, retriable)
    return _select_clips(session, ClipRow.video_id == video_id, or_(pending, retry))


def failed_clips(session: Session, video_id: str, limit: int | None = None) -> list[StoredClip]:
    """Return the clips that failed, in order, at most ``limit``."""
    failed = ClipRow.state == ClipState.FAILED
    return _select_clips(session, ClipRow.video_id == video_id, failed, limit=limit)


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
    encoder: str | None = None,
) -> None:
    """Set the state of a clip, with the text and vector that sum it up, shape (D,).

    ``encoder`` made the vectors of its memories, of which this one is the mean direction.

    A deleted clip is left unchanged.

    Raises:
        NotFound: The video has no such clip; it may just have been deleted.
    """
    values: dict[str, object] = {
        "state": str(state),
        "error": error,
        "text": text,
        "embedding": None if embedding is None else list(embedding),
        "encoder": None if embedding is None else encoder,
        "attempts": ClipRow.attempts + int(state == ClipState.FAILED),
        "updated_at": func.now(),
    }
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    not_deleted = ClipRow.state != ClipState.DELETED
    session.execute(update(ClipRow).where(this_clip, not_deleted).values(values))
    if session.scalar(select(ClipRow.clip).where(this_clip)) is None:
        raise NotFound(f"video {video_id} has no clip {index}: was it deleted meanwhile?")


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

    Args:
        video_ids: The videos, in the order of the view's scopes.
        as_of_ms: Milliseconds of video time; None is the end.

    Raises:
        NotFound: There is no such video.
    """
    rows = session.execute(_last_settled(video_ids, as_of_ms)).all()
    last: dict[str, int] = dict(rows)
    for video_id in video_ids:
        if video_id not in last:
            raise NotFound(f"no video goes by {video_id!r}: `homer videos` lists them")
    scopes = tuple(Scope(video=v, last_clip=last[v]) for v in list(dict.fromkeys(video_ids)))
    return MemoryView(scopes=scopes, as_of_ms=as_of_ms)


def _last_settled(video_ids: Sequence[str], as_of_ms: int | None) -> Select[str, int]:
    """Select each video's last clip that is settled with all before it and ended in time."""
    left_out = _unsettled() if as_of_ms is None else or_(_unsettled(), ClipRow.end_ms > as_of_ms)
    # Two probes of an index for each video: what they take depends on no statistics of the tables.
    of_video = ClipRow.video_id == VideoRow.id
    first_out = select(func.min(ClipRow.clip)).where(of_video, left_out).correlate(VideoRow)
    before = ClipRow.clip < func.coalesce(first_out.scalar_subquery(), MOST_CLIPS)
    last = select(func.max(ClipRow.clip)).where(of_video, before).correlate(VideoRow)
    settled = func.coalesce(last.scalar_subquery(), -1)
    return select(VideoRow.id, settled).where(is_any_text(VideoRow.id, video_ids))


def _unsettled() -> ColumnElement[bool]:
    """Return the condition that a clip is neither done nor deleted, nor failed for good."""
    given_up = or_(ClipRow.attempts >= MAX_ATTEMPTS, VideoRow.state != WATCHING)
    failed_for_good = and_(ClipRow.state == ClipState.FAILED, given_up)
    return and_(text(UNFINISHED), not_(failed_for_good))


def _select_clips(
    session: Session, *conditions: ColumnElement[bool], offset: int = 0, limit: int | None = None
) -> list[StoredClip]:
    columns = (
        ClipRow.clip,
        ClipRow.start_ms,
        ClipRow.end_ms,
        ClipRow.state,
        ClipRow.error,
        ClipRow.attempts,
        ClipRow.seconds,
        ClipRow.budget,
        ClipRow.left_out,
        ClipRow.dropped,
        ClipRow.gaps,
    )
    query = select(*columns).where(*conditions).order_by(ClipRow.clip)
    rows = session.execute(query.offset(offset).limit(limit))
    return [
        StoredClip(
            index=row.clip,
            span=TimeSpan.of(row.start_ms, row.end_ms),
            state=ClipState(row.state),
            error=row.error,
            attempts=row.attempts,
            seconds=row.seconds,
            budget=row.budget,
            left_out=tuple(row.left_out),
            dropped=tuple(row.dropped),
            gaps=tuple(
                Gap(span=TimeSpan.of(start, end), reason=GapReason[reason.upper()])
                for start, end, reason in row.gaps
            ),
        )
        for row in rows
    ]


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
    """Return the states of clips ``start <= clip < stop`` and of ``also``."""
    of_video = ClipRow.video_id == video_id
    wanted = or_(and_(ClipRow.clip >= start, ClipRow.clip < stop), ClipRow.clip.in_(also))
    query = select(ClipRow.clip, ClipRow.state).where(of_video, wanted).order_by(ClipRow.clip)
    states = session.execute(query).all()
    pending = of_video & (ClipRow.state == ClipState.PENDING) & (ClipRow.clip >= start)
    highest = session.scalar(select(func.max(ClipRow.clip)).where(of_video))
    return ClipStates(
        done=tuple(clip for clip, state in states if state == ClipState.DONE),
        failed=tuple(clip for clip, state in states if state == ClipState.FAILED),
        first_pending=session.scalar(select(func.min(ClipRow.clip)).where(pending)),
        highest=-1 if highest is None else highest,
    )
