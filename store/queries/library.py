"""The library: page by page, and the lines of it that a search finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, ScalarSelect, and_, delete, func, not_, or_, select, true
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.media import ClipState
from domain.memories import Memory, Scope
from domain.words import make_storable
from store.queries.conditions import (
    IN_VIEW,
    Reader,
    is_left,
    is_waiting,
    last_clip_of,
    reading_driver,
)
from store.queries.memories import MARK_END, MARK_START, spoken_line
from store.queries.videos import FINISHED_STATES
from store.tables.library import SavedSearchRow
from store.tables.schema import (
    BlobRow,
    CharacterMemberRow,
    ClipRow,
    IdentityRow,
    KeyframeRow,
    MemoryRow,
    SegmentRow,
    TrajectoryVideoRow,
    VideoRow,
)

# The library page by page: each video's progress and contents.


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
    row = KeyframeRow
    first = select(row.blob).where(row.video_id == VideoRow.id).order_by(row.clip, row.time_ms)
    counts = (
        _clips(true()).label("clips"),
        _clips(done).label("done"),
        _clips(is_left()).label("failed"),
        first.limit(1).correlate(VideoRow).scalar_subquery().label("thumb"),
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
    def count(row: Any) -> int:
        return session.scalar(select(func.count()).where(row.video_id == video_id)) or 0

    sizes = select(func.count(), func.coalesce(func.sum(BlobRow.size), 0))
    images, size = session.execute(sizes.where(BlobRow.video_id == video_id)).one()
    return Holdings(
        clips=count(ClipRow),
        memories=count(MemoryRow),
        people=session.scalar(
            select(func.count(CharacterMemberRow.number.distinct()))
            .join(IdentityRow, IdentityRow.id == CharacterMemberRow.identity_id)
            .where(IdentityRow.video_id == video_id, CharacterMemberRow.in_force)
            .where(CharacterMemberRow.to_clip.is_(None))
        )
        or 0,
        events=count(SegmentRow),
        answers=count(TrajectoryVideoRow),
        images=images,
        bytes=int(size),
    )


def _clips(counted: ColumnElement[bool]) -> ScalarSelect[int]:
    query = select(func.count()).where(ClipRow.video_id == VideoRow.id, counted)
    return query.correlate(VideoRow).scalar_subquery()


def _title_has(words: str) -> list[ColumnElement[bool]]:
    wanted = make_storable(words).strip()
    title = VideoRow.title.icontains(wanted, autoescape=True)
    return [or_(title, VideoRow.id == wanted)] if wanted else []


# The lines of a whole library that a search finds, with the videos and kinds that have them.

# Lines with the words among which the best are found: a frequent word is in half of a library.
MOST_MATCHES = 2_000
CLOSE_TO_FRAME_MS = 60_000
"""How far the picture of a line is from its moment, at most."""

Tags = Mapping[str, Collection[str]]
"""Tags such as ``<face_3>``, by video."""


_MATCHES = f"""
    WITH sought AS MATERIALIZED (SELECT websearch_to_tsquery('english', %(words)s) AS query),
    found AS MATERIALIZED (
        SELECT id, video_id, clip, source, text, speaker, start_ms, end_ms, words
        FROM memories AS m, sought
        WHERE (%(words)s = '' OR words @@ sought.query) AND kind = 'episodic'
          AND source = ANY(%(sources)s::text[])
          AND video_id IN (SELECT jsonb_object_keys(%(last_clip_of)s::jsonb)) AND {IN_VIEW}
          AND (%(anybody)s OR id IN (
              SELECT l.memory_id FROM memory_links AS l
              JOIN identities AS i ON i.id = l.identity_id
              JOIN unnest(%(tag_videos)s::text[], %(tags)s::text[]) AS who (video, tag)
                ON who.video = i.video_id AND who.tag = concat('<', i.kind, '_', i.number, '>'))
            OR speaker = %(name)s)
        LIMIT %(matches)s)
    (SELECT NULL::int, found.id, video_id, clip, source,
           CASE WHEN %(words)s = '' THEN text
                ELSE ts_headline('english', text, sought.query, %(marked)s) END,
           speaker, start_ms, end_ms
    FROM found CROSS JOIN sought JOIN videos ON videos.id = found.video_id
    ORDER BY ts_rank_cd(found.words, sought.query) DESC, videos.created_at DESC, start_ms DESC,
             found.id
    LIMIT %(limit)s)
    UNION ALL
    SELECT count(*)::int, 0, video_id, 0, source, '', NULL, 0, 0
    FROM found GROUP BY video_id, source
"""


def lines_in_library(
    database: Reader,
    scopes: Sequence[Scope],
    words: str,
    sources: Collection[str],
    limit: int,
    person: tuple[str, Tags] | None = None,
) -> tuple[list[Memory], dict[str, int], dict[str, int], bool]:
    """Return the best ``limit`` lines in view with all these words, matched by stem.

    Then how many of all matches each video and each source has, and whether there are more than
    ``MOST_MATCHES``: only so many were looked at.

    Lines that are as good are in order of time, the newest videos first.

    Args:
        words: Words as in a web search, "phrases" and -exclusions too; "": any line.
        person: A name, and the tags of those who have it: only lines that mention them, or that
            they say.
    """
    name, tags = person or ("", {})
    pairs = [(video, tag) for video, of_video in tags.items() for tag in sorted(of_video)]
    parameters = {
        "last_clip_of": last_clip_of(scopes),
        "words": words,
        "sources": sorted(sources),
        "anybody": person is None,
        "name": name,
        "tag_videos": [video for video, _ in pairs],
        "tags": [tag for _, tag in pairs],
        "matches": MOST_MATCHES + 1,
        "limit": limit,
        "marked": f"StartSel={MARK_START}, StopSel={MARK_END}, HighlightAll=true",
    }
    rows = reading_driver(database).execute(_MATCHES, parameters, prepare=False).fetchall()
    lines = [spoken_line(row[1:]) for row in rows if row[0] is None]
    videos, by_source = Counter[str](), Counter[str]()
    for count, _, video, _, source, *_ in rows:
        if count is not None:
            videos[video] += count
            by_source[source] += count
    return lines, videos, by_source, videos.total() > MOST_MATCHES


_NAMED = """
    SELECT id, video_id, clip, source, text, speaker, start_ms, end_ms FROM memories
    WHERE id = ANY(%(ids)s) AND kind = 'episodic' AND source = ANY(%(sources)s::text[])
"""


def library_lines(database: Reader, ids: Collection[int], sources: Collection[str]) -> list[Memory]:
    """Return those of these lines that are of these sources, in no order."""
    parameters = {"ids": list(ids), "sources": sorted(sources)}
    return [
        spoken_line(row) for row in reading_driver(database).execute(_NAMED, parameters).fetchall()
    ]


_FRAMES = """
    SELECT given.number, frame.blob
    FROM unnest(%(videos)s::text[], %(clips)s::int[], %(times)s::bigint[])
         WITH ORDINALITY AS given (video, clip, at, number)
    CROSS JOIN LATERAL (
        SELECT k.blob, abs(k.time_ms - given.at) AS away FROM keyframes AS k
        WHERE k.video_id = given.video AND k.clip BETWEEN given.clip - 1 AND given.clip + 1
        ORDER BY away LIMIT 1) AS frame
    WHERE frame.away <= %(most)s
"""


def frames_of_lines(database: Reader, lines: Sequence[Memory]) -> dict[int, str]:
    """Return the SHA-256 of the keyframe nearest to each line that has one near, by its id."""
    parameters = {
        "videos": [line.video for line in lines],
        "clips": [line.clip for line in lines],
        "times": [line.span.start_ms for line in lines],
        "most": CLOSE_TO_FRAME_MS,
    }
    rows = reading_driver(database).execute(_FRAMES, parameters).fetchall()
    return {lines[number - 1].id: blob for number, blob in rows}


# Searches of the library that are saved under a name.


def list_searches(session: Session) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the query of each, by name."""
    row = SavedSearchRow
    found = session.execute(select(row.name, row.query).order_by(row.name))
    return [(name, query) for name, query in found]


def put_search(session: Session, name: str, query: dict[str, Any]) -> None:
    """Save a search; one of the same name is replaced."""
    new = insert(SavedSearchRow).values(name=name, query=query)
    session.execute(new.on_conflict_do_update(index_elements=["name"], set_={"query": query}))


def delete_search(session: Session, name: str) -> None:
    session.execute(delete(SavedSearchRow).where(SavedSearchRow.name == name))
