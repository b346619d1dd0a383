"""Videos: added, found by name, deleted with all that is theirs; and live streams and gaps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import normalize

from sqlalchemy import ColumnElement, and_, delete, func, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.errors import Ambiguous, NotFound
from domain.media import Clip, ClipState, Gap, GapReason, PictureTally, Stream, StreamClip, Video
from domain.time import TimeSpan
from domain.words import WORD_JOINER, make_storable, marked
from store.queries.blobs import unused_blobs
from store.queries.conditions import MAX_ATTEMPTS, is_any_text, is_left, is_waiting
from store.queries.percepts import lock_video
from store.tables.schema import (
    BlobRow,
    ClipRow,
    MessageRow,
    ModelCallRow,
    QuestionRow,
    StreamClipRow,
    StreamGapRow,
    StreamRow,
    TakenRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    VideoRow,
)

WATCHING, DONE, FAILED = "watching", "done", "failed"

FINISHED_STATES = (ClipState.DONE, ClipState.DELETED)
"""States of clips that need no watching any more."""
NEAR = 3
"""Titles that are suggested at most where no video has a name."""


@dataclass(frozen=True, slots=True)
class VideoState:
    """The progress of a video. ``state``: watching, done or failed; counts are of clips.

    ``done`` includes deleted clips, which need no watching; ``failed`` those of which only local
    lines are stored, since their model failed, and that the next run has written.
    """

    state: str
    error: str | None
    clips: int
    done: int
    failed: int
    models: Mapping[str, str]


def add_video(
    session: Session, video: Video, clips: Sequence[Clip], models: Mapping[str, str]
) -> bool:
    """Add a video with its clips, all pending; return False if it exists already.

    ``models``: port -> model name, for the record.
    """
    # An existing video keeps everything but its path, since a file may have been moved.
    values = video.model_dump() | {"state": WATCHING, "models": dict(models)}
    added = insert(VideoRow).values(values).on_conflict_do_nothing().returning(VideoRow.id)
    if session.scalar(added) is None:
        if video.path is not None:
            set_progress(session, video.id, path=video.path)
        return False
    if clips:
        session.execute(insert(ClipRow), [new_clip_row(video.id, clip) for clip in clips])
    return True


def find_video(session: Session, name: str) -> Video:
    """Return the video with that id, title or file name, else that prefix of an id or a title.

    Raises:
        NotFound: There is none.
        Ambiguous: There are several; the message names them.
    """
    # Clients send a title back as it was made harmless for them.
    plain = make_storable(name).replace(WORD_JOINER, "")
    name, stem = normalize("NFC", plain), func.lower(VideoRow.title)
    files = {normalize(form, name).rpartition("/")[2] for form in ("NFC", "NFD")}
    conditions: list[ColumnElement[bool]] = [
        VideoRow.id == name,
        VideoRow.title == name,
        or_(*(VideoRow.path.endswith(f"/{file}", autoescape=True) for file in sorted(files))),
        stem == name.lower(),
        VideoRow.id.startswith(name, autoescape=True)
        | stem.startswith(name.lower(), autoescape=True),
    ]
    for condition in conditions if name else []:
        rows = session.scalars(
            select(VideoRow).where(condition).order_by(VideoRow.id).limit(6)
        ).all()
        if rows:
            if len(rows) > 1:
                shown = [f"{row.id} ({row.title})" for row in rows[:5]]
                listed = ", ".join([*shown, "..."] if len(rows) > len(shown) else shown)
                raise Ambiguous(f"several videos go by {name!r}: {listed}; give more of the id")
            return Video.model_validate(rows[0])
    titles = list(video_titles(session).values())
    holding = [title for title in titles if name.strip() and name.lower() in title.lower()]
    spelled = {title.lower(): title for title in titles}
    near = [spelled[word] for word in get_close_matches(name.lower(), spelled, NEAR)]
    hint = "`homer videos` lists them"
    if found := list(dict.fromkeys([*holding, *near]))[:NEAR]:
        hint = marked(f"did you mean {' or '.join(map(repr, found))}?")
    raise NotFound(f"no video goes by {name!r}: {hint}")


def known_video(session: Session, video_id: str) -> Video | None:
    """Return the video with exactly this id, or None."""
    row = session.get(VideoRow, video_id)
    return None if row is None else Video.model_validate(row)


def list_videos(session: Session) -> list[Video]:
    """Return all videos, by title, then id."""
    rows = session.scalars(select(VideoRow).order_by(VideoRow.title, VideoRow.id))
    return [Video.model_validate(row) for row in rows]


def video_titles(session: Session) -> dict[str, str]:
    """Return the titles of all videos by id, in order of title, then id."""
    query = select(VideoRow.id, VideoRow.title).order_by(VideoRow.title, VideoRow.id)
    return dict(session.execute(query).all())


def newest_titles(
    session: Session,
    limit: int | None = None,
    since: datetime | None = None,
    only: Collection[str] = (),
) -> dict[str, str]:
    """Return the titles of videos by id, those that were added last first; None: all.

    ``since``: of those added since then; ``only``: of these, if any are given.
    """
    query = select(VideoRow.id, VideoRow.title).order_by(VideoRow.created_at.desc(), VideoRow.id)
    if since is not None:
        query = query.where(VideoRow.created_at >= since)
    if only:
        query = query.where(is_any_text(VideoRow.id, only))
    return dict(session.execute(query.limit(limit)).all())


def find_videos(session: Session, ids: Sequence[str]) -> dict[str, Video]:
    """Return those of these videos that exist, by id."""
    rows = session.scalars(select(VideoRow).where(VideoRow.id.in_(set(ids))))
    return {row.id: Video.model_validate(row) for row in rows}


def set_video_state(session: Session, video_id: str, state: str, error: str | None = None) -> None:
    """Set the state of a video: watching, done, or failed with the reason."""
    if state not in (WATCHING, DONE, FAILED):
        raise ValueError(f"not a state of a video: {state!r}")
    set_progress(session, video_id, state=state, error=error)


def set_progress(session: Session, video_id: str, **values: object) -> None:
    """Set values of a video's row such as its state, duration or path; write only changes."""
    changes = (getattr(VideoRow, name).is_distinct_from(value) for name, value in values.items())
    session.execute(update(VideoRow).where(VideoRow.id == video_id, or_(*changes)).values(values))


def video_state(session: Session, video_id: str) -> VideoState | None:
    """Return the progress of a video; None if there is no such video."""
    video = session.get(VideoRow, video_id)
    if video is None:
        return None
    query = select(
        func.count(),
        func.count().filter(ClipRow.state.in_(FINISHED_STATES), not_(is_waiting())),
        func.count().filter(is_left()),
    ).where(ClipRow.video_id == video_id)
    clips, done, failed = session.execute(query).one()
    return VideoState(video.state, video.error, clips, done, failed, dict(video.models))


def protect_video(session: Session, video_id: str) -> bool:
    """Protect a video from deletion until this transaction ends; return False if it is gone."""
    # ``delete_video`` waits for this lock before it touches any row.
    session.execute(text("LOCK TABLE model_calls IN ROW EXCLUSIVE MODE"))
    return session.scalar(select(VideoRow.id).where(VideoRow.id == video_id)) is not None


def delete_video(session: Session, video_id: str) -> list[str]:
    """Delete every row of a video, and every trajectory over it.

    Its questions, events and model calls are deleted too, and messages only they used.

    Returns:
        SHA-256 of the blobs that no video uses any more, for ``store.database.remove_unused_blobs``
        to remove once this transaction is committed.
    """
    lock_video_for_delete(session, video_id)
    of_video = select(BlobRow.sha256).where(BlobRow.video_id == video_id)
    blobs = list(session.scalars(of_video))
    delete_trajectories(session, video_id)
    delete_calls(session, ModelCallRow.video_id == video_id)
    session.execute(delete(ClipRow).where(ClipRow.video_id == video_id))
    session.execute(delete(VideoRow).where(VideoRow.id == video_id))
    return unused_blobs(session, blobs)


def lock_video_for_delete(session: Session, video_id: str) -> None:
    """Lock a video exclusively before anything of it is deleted; call it first."""
    # It waits for running writes and for questions being added; later ones see what is left.
    lock_video(session, video_id)
    # Against all writers of calls: none may begin to use a message that is about to be deleted.
    session.execute(text("LOCK TABLE model_calls IN SHARE ROW EXCLUSIVE MODE"))
    # Corrections lock this table before the video's row.
    session.execute(text("LOCK TABLE corrections IN SHARE ROW EXCLUSIVE MODE"))
    session.execute(select(VideoRow.id).where(VideoRow.id == video_id).with_for_update())


def lock_videos_for_share(session: Session, video_ids: Sequence[str]) -> None:
    """Lock the videos of a new question in share mode against deletion until this transaction ends.

    Raises:
        NotFound: One was deleted meanwhile.
    """
    query = select(VideoRow.id).where(VideoRow.id.in_(video_ids)).order_by(VideoRow.id)
    locked_ids = set(session.scalars(query.with_for_update(key_share=True, read=True)))
    for video_id in video_ids:
        if video_id not in locked_ids:
            raise NotFound(f"no video goes by {video_id!r}: `homer videos` lists them")


def delete_trajectories(session: Session, video_id: str) -> None:
    """Delete every trajectory over a video, with its question and calls."""
    looked = TrajectoryVideoRow.video_id == video_id
    query = select(TrajectoryVideoRow.trajectory_id).where(looked)
    delete_runs(session, list(session.scalars(query)))


def delete_runs(session: Session, ids: Sequence[str]) -> None:
    """Delete trajectories with their calls, and questions that no other has."""
    question_ids = select(TrajectoryRow.question_id).where(TrajectoryRow.id.in_(ids))
    questions = list(session.scalars(question_ids))
    delete_calls(session, ModelCallRow.trajectory_id.in_(ids))
    session.execute(delete(TrajectoryRow).where(TrajectoryRow.id.in_(ids)))
    others = select(TrajectoryRow.question_id)
    only_theirs = and_(QuestionRow.id.in_(questions), QuestionRow.id.not_in(others))
    session.execute(delete(QuestionRow).where(only_theirs))


def delete_calls(session: Session, condition: ColumnElement[bool]) -> None:
    """Delete calls, and messages of the pool that only they used."""
    used = select(func.unnest(ModelCallRow.messages).label("hash"))
    hashes = list(session.scalars(used.where(condition).distinct()))
    session.execute(delete(ModelCallRow).where(condition))
    session.execute(
        delete(MessageRow).where(MessageRow.hash.in_(hashes), MessageRow.hash.not_in(used))
    )


def new_clip_row(video_id: str, clip: Clip) -> dict[str, object]:
    """Return the columns of a clip that is about to be watched."""
    return {
        "video_id": video_id,
        "clip": clip.index,
        "start_ms": clip.span.start_ms,
        "end_ms": clip.span.end_ms,
        "state": str(ClipState.PENDING),
        "attempts": 0,
        "gaps": [],
        "text": "",
    }


def named_or_all(session: Session, names: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the named videos, each once, or else of all videos by title.

    Empty if none is named and there are none.

    Raises:
        NotFound: No video has one of the names.
        Ambiguous: Several do.
    """
    if names:
        return tuple(dict.fromkeys(find_video(session, name).id for name in names))
    return tuple(video_titles(session))


# Items that schedules have processed, by digest.


class FailedItem(NamedTuple):
    """An item that could not be watched, and why."""

    failed_at: datetime
    error: str


def processed_items(session: Session, keys: Collection[str]) -> set[str]:
    return set(session.scalars(select(TakenRow.key).where(TakenRow.key.in_(keys))))


def record_processed(session: Session, key: str, error: str | None = None) -> None:
    """Record that an item was processed; ``error`` says why it could not be watched."""
    row = insert(TakenRow).values(key=key, told=error)
    session.execute(row.on_conflict_do_update(index_elements=[TakenRow.key], set_={"told": error}))


def failed_items(session: Session, limit: int) -> list[FailedItem]:
    """Return the items that could not be watched, latest first."""
    row = TakenRow
    query = (
        select(row.taken_at, row.told)
        .where(row.told.is_not(None))
        .order_by(row.taken_at.desc(), row.key)
    )
    return [
        FailedItem(failed_at, error or "")
        for failed_at, error in session.execute(query.limit(limit))
    ]


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


def videos_by_age(session: Session) -> list[tuple[str, str, datetime]]:
    """Return id, title and age of every video that is not being watched, oldest first."""
    # A stream is as old as its last clip, since it can be resumed under its name.
    row = VideoRow
    streamed = select(StreamRow.video_id).where(StreamRow.video_id == row.id).exists()
    last_clip = select(func.max(ClipRow.updated_at)).where(ClipRow.video_id == row.id, streamed)
    since = func.greatest(row.created_at, last_clip.scalar_subquery()).label("since")
    query = select(row.id, row.title, since).where(row.state != WATCHING)
    found = session.execute(query.order_by(since, row.id))
    return [(video, title, at) for video, title, at in found]
