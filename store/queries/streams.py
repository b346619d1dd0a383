"""Live streams: started and resumed, extended clip by clip, with their gaps."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.media import Clip, ClipState
from domain.streams import Gap, GapReason, PictureTally, Stream, StreamClip
from domain.time import TimeSpan
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.videos import WATCHING, new_clip_row, set_progress
from store.tables.schema import ClipRow, StreamClipRow, StreamGapRow, StreamRow, VideoRow


def add_stream(session: Session, video_id: str, stream: Stream) -> None:
    """Record that a video is a live stream; an existing one is left unchanged."""
    values = {"video_id": video_id, **stream.model_dump()}
    session.execute(insert(StreamRow).values(values).on_conflict_do_nothing())


def find_stream(session: Session, video_id: str) -> Stream | None:
    """Return the stream of a video; None if it is a file."""
    row = session.get(StreamRow, video_id)
    return None if row is None else Stream(source=row.source, began_ms=row.began_ms)


def active_streams(session: Session) -> list[str]:
    """Return the ids of the streams that are marked as being watched."""
    row = VideoRow
    stream_ids = select(StreamRow.video_id)
    query = select(row.id).where(row.state == WATCHING, row.id.in_(stream_ids)).order_by(row.id)
    return list(session.scalars(query))


def resume_stream(session: Session, video_id: str) -> tuple[int, int]:
    """Resume a stream: delete a clip that was being watched when a process died.

    Its time becomes part of the next gap.

    Returns:
        The number of the next clip, and the milliseconds at which the last one ended.
    """
    of_video = ClipRow.video_id == video_id
    session.execute(delete(ClipRow).where(of_video, ClipRow.state == ClipState.PENDING))
    query = select(func.max(ClipRow.clip), func.max(ClipRow.end_ms)).where(of_video)
    last, end_ms = session.execute(query).one()
    later_gaps = and_(StreamGapRow.video_id == video_id, StreamGapRow.start_ms >= (end_ms or 0))
    session.execute(delete(StreamGapRow).where(later_gaps))
    set_progress(session, video_id, duration_ms=end_ms or 0)
    return (0, 0) if last is None else (last + 1, end_ms)


def add_clip(
    session: Session, video_id: str, clip: Clip, stream_clip: StreamClip, gaps: Iterable[Gap]
) -> None:
    """Add a clip that is about to be watched, with the gaps before and within it."""
    session.execute(insert(ClipRow).values(new_clip_row(video_id, clip)).on_conflict_do_nothing())
    counts = stream_clip.model_dump(exclude={"tally"}) | stream_clip.tally.model_dump()
    query = insert(StreamClipRow).values(video_id=video_id, **counts)
    session.execute(query.on_conflict_do_nothing())
    add_gaps(session, video_id, gaps)
    set_progress(session, video_id, duration_ms=clip.span.end_ms)


def add_gaps(session: Session, video_id: str, gaps: Iterable[Gap]) -> None:
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


def set_stream_clip(session: Session, video_id: str, stream_clip: StreamClip) -> None:
    """Set how a clip was finally watched: its level, its frames, its lag."""
    this_clip = and_(StreamClipRow.video_id == video_id, StreamClipRow.clip == stream_clip.clip)
    values = {
        "level": stream_clip.level,
        "sampled": stream_clip.tally.sampled,
        "lag_ms": stream_clip.lag_ms,
    }
    session.execute(update(StreamClipRow).where(this_clip).values(values))


def give_up_clip(session: Session, video_id: str, index: int) -> None:
    """Exclude a failed clip of a stream from retries: its data is gone."""
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == index)
    session.execute(update(ClipRow).where(this_clip).values(attempts=MAX_ATTEMPTS))


def gaps_of(session: Session, video_id: str, until_ms: int | None = None) -> list[Gap]:
    """Return the gaps of a stream, in order, up to a moment of video time."""
    row = StreamGapRow
    query = select(row).where(row.video_id == video_id).order_by(row.start_ms, row.id)
    if until_ms is not None:
        query = query.where(row.start_ms < until_ms)
    return [
        Gap(
            span=TimeSpan.of(gap.start_ms, gap.end_ms),
            reason=GapReason[gap.reason.upper()],
            frames=gap.frames,
        )
        for gap in session.scalars(query)
    ]


def stream_clips(session: Session, video_id: str) -> list[StreamClip]:
    """Return how each clip of a stream was watched, in order."""
    row = StreamClipRow
    query = select(row).where(row.video_id == video_id).order_by(row.clip)
    return [
        StreamClip(
            clip=stream_clip.clip,
            level=stream_clip.level,
            tally=PictureTally(
                came=stream_clip.came, damaged=stream_clip.damaged, sampled=stream_clip.sampled
            ),
            lag_ms=stream_clip.lag_ms,
        )
        for stream_clip in session.scalars(query)
    ]
