"""Videos: added, found by what users call them, and deleted with all that came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.errors import Ambiguous, NotFound
from domain.media import Clip, ClipState, Video
from domain.texts import storable
from store.queries.blobs import unused_blobs
from store.queries.percepts import lock_video
from store.tables.schema import (
    BlobRow,
    ClipRow,
    MessageRow,
    ModelCallRow,
    QuestionRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    VideoRow,
)

WATCHING, DONE, FAILED = "watching", "done", "failed"

OVER = (ClipState.DONE, ClipState.DELETED)
"""Clips that need no watching any more."""
CHECKPOINT_TABLES = ("checkpoint_writes", "checkpoint_blobs", "checkpoints")


@dataclass(frozen=True, slots=True)
class VideoState:
    """How far a video is. ``state``: watching, done or failed; counts are of clips.

    ``done`` counts those too that were deleted: they need no watching.
    """

    state: str
    error: str | None
    clips: int
    done: int
    failed: int
    models: Mapping[str, str]
    added_at: datetime


def add_video(
    session: Session, video: Video, clips: Sequence[Clip], models: Mapping[str, str]
) -> bool:
    """Adds a video with its clips, all pending; False where it is known.

    A known video keeps everything but its path, since a file may have been moved.

    Args:
        session: an open transaction.
        video: the source.
        clips: all its clips, in order.
        models: port -> model name, for the record.
    """
    values = video.model_dump() | {"state": WATCHING, "models": dict(models)}
    added = insert(VideoRow).values(values).on_conflict_do_nothing().returning(VideoRow.id)
    if session.scalar(added) is None:
        _moved(session, video)
        return False
    if clips:
        session.execute(insert(ClipRow), [_clip_row(video.id, clip) for clip in clips])
    return True


def find_video(session: Session, name: str) -> Video:
    """The video of that id, else of that title, else of that beginning of an id or a title.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do; the message names them.
    """
    name, stem = storable(name), func.lower(VideoRow.title)
    ways: list[ColumnElement[bool]] = [
        VideoRow.id == name,
        VideoRow.title == name,
        stem == name.lower(),
        VideoRow.id.startswith(name, autoescape=True)
        | stem.startswith(name.lower(), autoescape=True),
    ]
    for way in ways if name else []:
        found = session.scalars(select(VideoRow).where(way).order_by(VideoRow.id).limit(6)).all()
        if found:
            return _the_only(name, found)
    raise NotFound(f"no video goes by {name!r}: `homer videos` lists them")


def known_video(session: Session, video_id: str) -> Video | None:
    """The video of exactly this id, if any."""
    row = session.get(VideoRow, video_id)
    return None if row is None else _video(row)


def list_videos(session: Session) -> list[Video]:
    """All videos, by title, then id."""
    rows = session.scalars(select(VideoRow).order_by(VideoRow.title, VideoRow.id))
    return [_video(row) for row in rows]


def titles(session: Session) -> dict[str, str]:
    """The title of every video by its id, by title, then id."""
    query = select(VideoRow.id, VideoRow.title).order_by(VideoRow.title, VideoRow.id)
    return dict(session.execute(query).all())


def videos_of(session: Session, ids: Sequence[str]) -> dict[str, Video]:
    """Those of these videos that are there, by id."""
    rows = session.scalars(select(VideoRow).where(VideoRow.id.in_(set(ids))))
    return {row.id: _video(row) for row in rows}


def set_video_state(session: Session, video_id: str, state: str, error: str | None = None) -> None:
    """Sets how far a video is: watching, done, or failed with the reason."""
    if state not in (WATCHING, DONE, FAILED):
        raise ValueError(f"not a state of a video: {state!r}")
    set_progress(session, video_id, state=state, error=error)


def set_progress(session: Session, video_id: str, **values: object) -> None:
    """Sets how far a video is, how long, or where its file is: what was learned stays as it is.

    Nothing is written where nothing changes: a row that is written without a change says that what
    was learned was said anew (``forget.touch``).
    """
    changes = (getattr(VideoRow, name).is_distinct_from(new) for name, new in values.items())
    here = (VideoRow.id == video_id, or_(*changes))
    session.execute(update(VideoRow).where(*here).values(values))


def video_state(session: Session, video_id: str) -> VideoState | None:
    """How far a video is; None where there is no such video."""
    found = session.get(VideoRow, video_id)
    if found is None:
        return None
    counts = (
        func.count(),
        func.count().filter(ClipRow.state.in_(OVER)),
        func.count().filter(ClipRow.state == ClipState.FAILED),
    )
    query = select(*counts).where(ClipRow.video_id == video_id)
    clips, done, failed = session.execute(query).one()
    return VideoState(
        found.state, found.error, clips, done, failed, dict(found.models), found.created_at
    )


def hold_video(session: Session, video_id: str) -> bool:
    """Keep a video from being deleted until this transaction ends; False where it is gone."""
    # What deletes a video waits for this lock before it touches any row (`delete_video`).
    session.execute(text("LOCK TABLE model_calls IN ROW EXCLUSIVE MODE"))
    return session.scalar(select(VideoRow.id).where(VideoRow.id == video_id)) is not None


def delete_video(session: Session, video_id: str) -> list[str]:
    """Deletes every row of a video, and every trajectory that looked at it.

    Its questions, events, model calls and checkpoints go too, and messages only they used.

    Returns:
        SHA-256 of the blobs that no video uses any more, for `store.sweep.drop_blobs` to remove
        once this transaction is committed.
    """
    close_video(session, video_id)
    mine = select(BlobRow.sha256).where(BlobRow.video_id == video_id)
    blobs = list(session.scalars(mine))
    delete_trajectories(session, video_id)
    delete_calls(session, ModelCallRow.video_id == video_id)
    session.execute(delete(ClipRow).where(ClipRow.video_id == video_id))
    session.execute(delete(VideoRow).where(VideoRow.id == video_id))
    return unused_blobs(session, blobs)


def drop_path(session: Session, video_id: str) -> None:
    """The file of a video is no more."""
    set_progress(session, video_id, path=None)


def _moved(session: Session, video: Video) -> None:
    if video.path is not None:
        set_progress(session, video.id, path=video.path)


def close_video(session: Session, video_id: str) -> None:
    """Keep a video to this transaction, which is about to delete of it; call it before all else.

    Whoever is writing to it, or asks about it, comes to an end first; whoever comes later finds
    what is left.
    """
    lock_video(session, video_id)
    # Held against all writers of calls: none may come to use a message that is about to go.
    session.execute(text("LOCK TABLE model_calls IN SHARE ROW EXCLUSIVE MODE"))
    # Whoever corrects holds this, and then asks for the video's row.
    session.execute(text("LOCK TABLE corrections IN SHARE ROW EXCLUSIVE MODE"))
    session.execute(select(VideoRow.id).where(VideoRow.id == video_id).with_for_update())


def share_videos(session: Session, video_ids: Sequence[str]) -> None:
    """Let no video of a question that begins be deleted until this transaction ends.

    Raises:
        NotFound: one was deleted meanwhile.
    """
    here = select(VideoRow.id).where(VideoRow.id.in_(video_ids)).order_by(VideoRow.id)
    found = set(session.scalars(here.with_for_update(key_share=True, read=True)))
    for video_id in video_ids:
        if video_id not in found:
            raise NotFound(f"no video goes by {video_id!r}: `homer videos` lists them")


def delete_trajectories(session: Session, video_id: str) -> None:
    """Deletes every trajectory that looked at a video, with its question, calls, checkpoints."""
    looked = TrajectoryVideoRow.video_id == video_id
    query = select(TrajectoryVideoRow.trajectory_id).where(looked)
    delete_runs(session, list(session.scalars(query)))


def delete_runs(session: Session, ids: Sequence[str]) -> None:
    """Deletes trajectories, with the questions of theirs alone, their calls and checkpoints."""
    asked = select(TrajectoryRow.question_id).where(TrajectoryRow.id.in_(ids))
    questions = list(session.scalars(asked))
    _delete_checkpoints(session, ids)
    delete_calls(session, ModelCallRow.trajectory_id.in_(ids))
    session.execute(delete(TrajectoryRow).where(TrajectoryRow.id.in_(ids)))
    others = select(TrajectoryRow.question_id)
    alone = (QuestionRow.id.in_(questions), QuestionRow.id.not_in(others))
    session.execute(delete(QuestionRow).where(*alone))


def delete_calls(session: Session, which: ColumnElement[bool]) -> None:
    """Deletes calls, and the pool's messages that only they used."""
    used = select(func.unnest(ModelCallRow.messages).label("hash"))
    gone = list(session.scalars(used.where(which).distinct()))
    session.execute(delete(ModelCallRow).where(which))
    session.execute(
        delete(MessageRow).where(MessageRow.hash.in_(gone), MessageRow.hash.not_in(used))
    )


def _delete_checkpoints(session: Session, trajectories: Sequence[str]) -> None:
    """LangGraph's rows; its tables are its own and may not be there."""
    for table in CHECKPOINT_TABLES:
        name = f"checkpoints.{table}"
        if session.scalar(select(func.to_regclass(name))) is not None:
            query = f"DELETE FROM {name} WHERE thread_id = ANY(:ids)"  # noqa: S608
            session.execute(text(query), {"ids": list(trajectories)})


def _the_only(name: str, found: Sequence[VideoRow]) -> Video:
    if len(found) > 1:
        named = ", ".join(f"{row.id} ({row.title})" for row in found[:5])
        more = ", ..." if len(found) > 5 else ""
        raise Ambiguous(f"several videos go by {name!r}: {named}{more}; give more of the id")
    return _video(found[0])


def _video(row: VideoRow) -> Video:
    return Video(**{field: getattr(row, field) for field in Video.model_fields})


def _clip_row(video_id: str, clip: Clip) -> dict[str, object]:
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


def named_or_only(session: Session, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of the videos that a question is about: those named, each once, else the only one.

    Empty where none is named and it is not clear which is meant.

    Raises:
        NotFound: none goes by one of the names.
        Ambiguous: several do.
    """
    if names:
        return tuple(dict.fromkeys(find_video(session, name).id for name in names))
    known = list_videos(session)
    return (known[0].id,) if len(known) == 1 else ()
