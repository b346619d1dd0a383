"""Stamps that tell whether data cached from videos is still current, in one query for all.

First whether anything was written at all, which is cheap; then the stamp of each video.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select, text
from sqlalchemy.orm import Session

from domain.errors import NotFound
from store.tables.schema import VideoRow

LinesKey = tuple[datetime, int, datetime, int]
"""Changes whenever the lines of the clips so far change."""
EventsKey = tuple[datetime, int, int, int, int]
"""Changes whenever the segments of a video change."""
PeopleKey = tuple[datetime, int, datetime, int, int, int, int]
"""Changes whenever identities or characters of a video may change."""


def version_of(key: LinesKey) -> int:
    """Return ``Stamp.version`` as of when these lines were read."""
    return key[1]


class Stamp(NamedTuple):
    """The state of a video, for comparison with cached data.

    ``added``: another time means it was watched again, with new ids. ``version`` is the transaction
    that last rewrote the video: it changes with every deletion and import, independent of clocks
    (``forget.touch``). ``marked``: when a clip up to the requested one was last marked, else when
    the video was added; ``done``: how many of them are done or deleted, since a failed clip may be
    done long after later ones. ``patch`` is the last one; of segment revisions and corrections
    there is the number of all, and of those closed or undone.
    """

    added: datetime
    version: int
    marked: datetime
    done: int
    patch: int
    revisions: int
    closed: int
    corrections: int
    undone: int

    @property
    def lines(self) -> LinesKey:
        """What the lines of the clips depend on."""
        return self.added, self.version, self.marked, self.done

    @property
    def events(self) -> EventsKey:
        """What the segments depend on."""
        return self.added, self.version, self.patch, self.revisions, self.closed

    @property
    def people(self) -> PeopleKey:
        """What identities depend on: clips and patches name people, corrections are laid over."""
        return *self.lines, self.patch, self.corrections, self.undone


_STAMPS = text(
    """
    WITH revised AS (SELECT segments.video_id AS id, count(*) AS every,
            count(revision.to_clip) AS closed
        FROM segments JOIN segment_revisions AS revision ON revision.segment_id = segments.id
        WHERE segments.video_id = ANY(CAST(:videos AS text[])) GROUP BY segments.video_id)
    SELECT video.id, video.created_at, video.rewritten,
           greatest(video.created_at, marked.at), marked.done, coalesce(patched.id, 0),
           coalesce(revised.every, 0), coalesce(revised.closed, 0),
           corrected.every, corrected.undone
    FROM unnest(CAST(:videos AS text[]), CAST(:clips AS bigint[])) AS asked (id, clip)
    JOIN videos AS video ON video.id = asked.id
    CROSS JOIN LATERAL (SELECT max(updated_at) AS at,
        count(*) FILTER (WHERE state IN ('done', 'deleted')) AS done FROM clips
        WHERE video_id = asked.id AND clip <= asked.clip) AS marked
    CROSS JOIN LATERAL (SELECT max(id) AS id FROM patches WHERE video_id = asked.id) AS patched
    LEFT JOIN revised ON revised.id = asked.id
    CROSS JOIN LATERAL (SELECT count(*) AS every, count(*) FILTER (WHERE undone) AS undone
        FROM corrections WHERE video_id = asked.id) AS corrected
    """
)


_MOMENT = text(
    """SELECT CASE WHEN NOT pg_is_in_recovery() THEN CAST(pg_current_snapshot() AS text) END"""
)


def current_snapshot(connection: Connection | Session) -> str | None:
    """Return the current snapshot: if it is equal later, nothing was written in between.

    None on a standby server, whose snapshots do not list all running transactions.
    """
    snapshot: str | None = connection.execute(_MOMENT).scalar_one()
    return snapshot


def stamps(session: Session, through: Mapping[str, int]) -> dict[str, Stamp]:
    """Return the stamp of each video, for its clips up to and including the one given.

    Raises:
        NotFound: No such video.
    """
    parameters = {"videos": list(through), "clips": list(through.values())}
    stamps_by_video = {row[0]: Stamp._make(row[1:]) for row in session.execute(_STAMPS, parameters)}
    for video in through:
        if video not in stamps_by_video:
            raise NotFound(f"no video has the id {video!r}; `homer videos` lists what there is")
    return stamps_by_video


def existing_videos(session: Session, videos: Collection[str]) -> set[str]:
    """Return those of these videos that were not deleted."""
    return set(session.scalars(select(VideoRow.id).where(VideoRow.id.in_(videos))))
