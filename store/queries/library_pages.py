"""The library page by page: each video's progress and contents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, ScalarSelect, and_, func, not_, or_, select, true
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.media import ClipState
from domain.texts import make_storable
from store.queries.conditions import is_left, is_waiting
from store.queries.videos import FINISHED_STATES
from store.tables.schema import (
    BlobRow,
    CharacterRow,
    ClipRow,
    KeyframeRow,
    MemoryRow,
    SegmentRow,
    TrajectoryVideoRow,
    VideoRow,
)


class LibraryEntry(Frozen):
    """A video in the list, with counts of its clips.

    ``thumb`` is the SHA-256 of its first keyframe; ``held`` is what its deletion removes, where
    that was asked for.
    """

    id: str
    title: str
    path: str | None = Field(default=None, exclude_if=lambda path: path is None)
    duration_ms: int
    width: int = 0
    height: int = 0
    state: str
    error: str | None = Field(default=None, exclude_if=lambda error: error is None)
    profile: str
    clips: int
    done: int
    failed: int
    held: Holdings | None = Field(default=None, exclude_if=lambda held: held is None)
    thumb: str | None = Field(default=None, exclude=True)


@dataclass(frozen=True, slots=True)
class WatchRate:
    """The number of clips done between two times; the last clip was done at ``last``."""

    clips: int
    first: datetime
    last: datetime


class Holdings(Frozen):
    """Counts of what is deleted with a video; ``bytes`` are those of its images."""

    clips: int
    memories: int
    people: int
    events: int
    answers: int
    images: int
    bytes: int


def videos_page(
    session: Session,
    offset: int = 0,
    limit: int | None = None,
    words: str = "",
    state: str | None = None,
    only: Collection[str] | None = None,
) -> list[LibraryEntry]:
    """Return videos by title, then id; only those with ``words`` in the title and that ``state``.

    ``only``: ids to choose from; None: all.
    """
    v = VideoRow
    columns = (v.id, v.title, v.path, v.duration_ms, v.width, v.height, v.state, v.error, v.profile)
    done = and_(ClipRow.state.in_(FINISHED_STATES), not_(is_waiting()))
    counts = (
        _clips(true()).label("clips"),
        _clips(done).label("done"),
        _clips(is_left()).label("failed"),
        _first_keyframe().label("thumb"),
    )
    query = select(*columns, *counts).where(*_title_has(words)).order_by(v.title, v.id)
    if state is not None:
        query = query.where(v.state == state)
    if only is not None:
        query = query.where(v.id.in_(only))
    rows = session.execute(query.offset(offset).limit(limit)).mappings()
    return [LibraryEntry.model_validate(dict(row)) for row in rows]


def count_videos(session: Session, words: str = "") -> int:
    """Return the number of videos; ``words``: only those with them in the title."""
    query = select(func.count()).select_from(VideoRow).where(*_title_has(words))
    return session.scalar(query) or 0


def watch_rate(session: Session, video_id: str, clips: int) -> WatchRate | None:
    """Return how fast the last ``clips`` clips were done; None for fewer than two."""
    row = ClipRow
    recent = (
        select(row.updated_at)
        .where(row.video_id == video_id, row.state == ClipState.DONE)
        .order_by(row.updated_at.desc())
        .limit(clips)
    ).subquery()
    done_at = recent.c.updated_at
    count, first, last = session.execute(
        select(func.count(), func.min(done_at), func.max(done_at))
    ).one()
    return WatchRate(count, first, last) if count > 1 else None


def video_holdings(session: Session, video_id: str) -> Holdings:
    """Return counts of what a video holds."""

    def count(row: Any) -> int:
        return session.scalar(select(func.count()).where(row.video_id == video_id)) or 0

    sizes = select(func.count(), func.coalesce(func.sum(BlobRow.size), 0))
    images, size = session.execute(sizes.where(BlobRow.video_id == video_id)).one()
    return Holdings(
        clips=count(ClipRow),
        memories=count(MemoryRow),
        people=count(CharacterRow),
        events=count(SegmentRow),
        answers=count(TrajectoryVideoRow),
        images=images,
        bytes=int(size),
    )


def _clips(counted: ColumnElement[bool]) -> ScalarSelect[int]:
    query = select(func.count()).where(ClipRow.video_id == VideoRow.id, counted)
    return query.correlate(VideoRow).scalar_subquery()


def _first_keyframe() -> ScalarSelect[str]:
    row = KeyframeRow
    first = select(row.blob).where(row.video_id == VideoRow.id).order_by(row.clip, row.time_ms)
    return first.limit(1).correlate(VideoRow).scalar_subquery()


def _title_has(words: str) -> list[ColumnElement[bool]]:
    wanted = make_storable(words).strip()
    title = VideoRow.title.icontains(wanted, autoescape=True)
    return [or_(title, VideoRow.id == wanted)] if wanted else []
