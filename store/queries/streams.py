"""Live streams: started and resumed, extended clip by clip, with their gaps."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.media import Clip, ClipState
from domain.streams import Gap, GapReason, PictureTally, Stream, StreamClip
from domain.time import TimeSpan
from store.queries.clips import ATTEMPTS
from store.queries.videos import WATCHING, set_progress
from store.tables.schema import ClipRow, StreamClipRow, StreamGapRow, StreamRow, VideoRow


def add_stream(session: Session, video_id: str, stream: Stream) -> None:
    """Record that a video is a live stream; an existing one is left unchanged."""
    values = {"video_id": video_id, **stream.model_dump()}
    session.execute(insert(StreamRow).values(values).on_conflict_do_nothing())


def find_stream(session: Session, video_id: str) -> Stream | None:
    """Return the stream of a video; None if it is a file."""
    row = session.get(StreamRow, video_id)
    return None if row is None else Stream(source=row.source, began_ms=row.began_ms)


def streams_begun(session: Session) -> list[str]:
    """Return the ids of the streams that are marked as being watched."""
    row = VideoRow
    streamed = select(StreamRow.video_id)
    query = select(row.id).where(row.state == WATCHING, row.id.in_(streamed)).order_by(row.id)
    return list(session.scalars(query))


def take_up(session: Session, video_id: str) -> tuple[int, int]:
    """Resume a stream: delete a clip that was being watched when a process died.

    Its time becomes part of the next gap.

    Returns:
        The number of the next clip, and the milliseconds at which the last one ended.
    """
    ours = ClipRow.video_id == video_id
    session.execute(delete(ClipRow).where(ours, ClipRow.state == ClipState.PENDING))
    query = select(func.max(ClipRow.clip), func.max(ClipRow.end_ms)).where(ours)
    last, end_ms = session.execute(query).one()
    beyond = (StreamGapRow.video_id == video_id, StreamGapRow.start_ms >= (end_ms or 0))
    session.execute(delete(StreamGapRow).where(*beyond))
    set_progress(session, video_id, duration_ms=end_ms or 0)
    return (0, 0) if last is None else (last + 1, end_ms)


def add_clip(
    session: Session, video_id: str, clip: Clip, told: StreamClip, gaps: Iterable[Gap]
) -> None:
    """Add a clip that is about to be watched, with the gaps before and within it."""
    values = {
        "video_id": video_id,
        "clip": clip.index,
        "start_ms": clip.span.start_ms,
        "end_ms": clip.span.end_ms,
        "state": str(ClipState.PENDING),
        "attempts": 0,
        "gaps": [],
        "text": "",
    }
    session.execute(insert(ClipRow).values(values).on_conflict_do_nothing())
    counts = told.model_dump(exclude={"tally"}) | told.tally.model_dump()
    query = insert(StreamClipRow).values(video_id=video_id, **counts)
    session.execute(query.on_conflict_do_nothing())
    add_gaps(session, video_id, gaps)
    set_progress(session, video_id, duration_ms=clip.span.end_ms)


def add_gaps(session: Session, video_id: str, gaps: Iterable[Gap]) -> None:
    """Add gaps of a stream."""
    rows = [
        {
            "video_id": video_id,
            "start_ms": gap.span.start_ms,
            "end_ms": gap.span.end_ms,
            "reason": gap.reason.name.lower(),
            "frames": gap.frames,
        }
        for gap in gaps
    ]
    if rows:
        session.execute(insert(StreamGapRow), rows)


def set_watched(session: Session, video_id: str, told: StreamClip) -> None:
    """Set how a clip was finally watched: its level, its frames, its lag."""
    here = (StreamClipRow.video_id == video_id, StreamClipRow.clip == told.clip)
    values = {"level": told.level, "sampled": told.tally.sampled, "lag_ms": told.lag_ms}
    session.execute(update(StreamClipRow).where(*here).values(values))


def lose_clip(session: Session, video_id: str, index: int) -> None:
    """Exclude a failed clip of a stream from retries: its data is gone."""
    here = (ClipRow.video_id == video_id, ClipRow.clip == index)
    session.execute(update(ClipRow).where(*here).values(attempts=ATTEMPTS))


def gaps_of(session: Session, video_id: str, until_ms: int | None = None) -> list[Gap]:
    """Return the gaps of a stream, in order, up to a moment of video time."""
    row = StreamGapRow
    query = select(row).where(row.video_id == video_id).order_by(row.start_ms, row.id)
    if until_ms is not None:
        query = query.where(row.start_ms < until_ms)
    return [
        Gap(
            span=TimeSpan.of(one.start_ms, one.end_ms),
            reason=GapReason[one.reason.upper()],
            frames=one.frames,
        )
        for one in session.scalars(query)
    ]


def clips_told(session: Session, video_id: str) -> list[StreamClip]:
    """Return how each clip of a stream was watched, in order."""
    row = StreamClipRow
    query = select(row).where(row.video_id == video_id).order_by(row.clip)
    return [
        StreamClip(
            clip=one.clip,
            level=one.level,
            tally=PictureTally(came=one.came, damaged=one.damaged, sampled=one.sampled),
            lag_ms=one.lag_ms,
        )
        for one in session.scalars(query)
    ]
