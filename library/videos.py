"""The videos of the library: listed, watched, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from domain.media import Video
from flows.check import VideoCheck, check_memory
from flows.video_locks import end_interrupted_streams, watched_videos, with_current_state
from library.params import (
    DEFAULT_LIMIT,
    AsOf,
    Limit,
    Offset,
    Page,
    VideoName,
    page,
)
from models.text_endpoint import searches_so_far
from store.database import Store
from store.progress import Progress
from store.queries import clips
from store.queries import library as stored
from store.queries import videos as queries
from store.queries.clips import StoredClip
from store.queries.library import LibraryEntry, WatchRate
from store.queries.videos import WATCHING, find_video

RECENT_CLIPS = 20
"""How many clips the rate is computed from."""


def all_videos(store: Store) -> Page[LibraryEntry]:
    """List the videos in the library.

    The state "paused" means that clips are missing and no process is watching the video.

    Examples:
      homer videos
      homer videos --json
    """
    with store.begin(snapshot=True) as session:
        entries = stored.videos_page(session)
    busy, searches = watched_videos(store), searches_so_far(store)
    spent = f"single searches took {searches} of an embeddings endpoint so far"
    empty = "nothing has been watched yet: homer ingest FILE"
    notes = (*([] if entries else [empty]), *([spent] if searches.requests and entries else []))
    shown = tuple(with_current_state(entry, busy) for entry in entries)
    return Page(items=shown, total=len(shown), notes=notes)


def videos(
    store: Store,
    query: Annotated[str, Field(max_length=200, description="Only titles with these words.")] = "",
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[LibraryEntry]:
    """List the videos of the library by title, with their lengths, and how far they were watched.

    The state is watching, paused, done or failed.
    """
    entries, total = page_of_videos(store, offset, limit, query)
    busy = watched_videos(store)
    return page([_told(with_current_state(entry, busy)) for entry in entries], total, offset)


def video(store: Store, video: VideoName) -> LibraryEntry:
    """Show a video, and the size of its memory.

    Raises:
        NotFound: there is no such video.
    """
    with store.begin(snapshot=True) as session:
        known = find_video(session, video).id
        (entry,) = stored.videos_page(session, only=[known])
        held = stored.video_holdings(session, known)
    entry = with_current_state(entry, watched_videos(store))
    return _told(entry).model_copy(update={"held": held})


def _told(entry: LibraryEntry) -> LibraryEntry:
    """Return a video without what is of the machine that watched it."""
    return entry.model_copy(update={"path": None, "error": None})


def page_of_videos(
    store: Store, offset: int, limit: int, words: str = ""
) -> tuple[list[LibraryEntry], int]:
    """Return a page of the library by title, and the number of videos."""
    with store.begin(snapshot=True) as session:
        listed = stored.videos_page(session, offset, limit, words)
        return listed, stored.count_videos(session, words)


def all_titles(store: Store) -> dict[str, str]:
    """Return the title of every video by its id, by title, then id."""
    with store.begin() as session:
        return queries.video_titles(session)


def newest_titles(store: Store, limit: int) -> dict[str, str]:
    """Return the titles of the videos that were added last by id, the newest first."""
    with store.begin() as session:
        return queries.newest_titles(session, limit)


def videos_named(store: Store, ids: Sequence[str]) -> dict[str, Video]:
    """Return those of the videos that are in the library, by id, in the given order."""
    with store.begin() as session:
        found = queries.find_videos(session, ids)
    return {video: found[video] for video in dict.fromkeys(ids) if video in found}


def being_watched(store: Store, limit: int, held: Collection[str] = ()) -> list[LibraryEntry]:
    """Return unfinished videos by title: ``limit`` of them, and all those of ``held``."""
    with store.begin(snapshot=True) as session:
        listed = stored.videos_page(session, 0, limit, state=WATCHING)
        missing = set(held) - {one.id for one in listed}
        if not missing:
            return listed
        return listed + stored.videos_page(session, state=WATCHING, only=missing)


def failed_clips_of(store: Store, video: str, limit: int | None = None) -> list[StoredClip]:
    """Return the first ``limit`` failed clips of a video, with the reason of each."""
    with store.begin() as session:
        return clips.failed_clips(session, video, limit)


def watch_rate(store: Store, video: str) -> WatchRate | None:
    """Return how fast a video was watched recently; None for fewer than two clips."""
    with store.begin() as session:
        return stored.watch_rate(session, video, RECENT_CLIPS)


def seconds_left(rate: WatchRate | None, left: int, now: datetime) -> float | None:
    """Return the seconds that ``left`` clips will take at that rate; None if not known."""
    if rate is None or left <= 0:
        return None
    each = (rate.last - rate.first).total_seconds() / (rate.clips - 1)
    elapsed = max(0.0, (now - rate.last).total_seconds())
    # A current clip that has taken longer than the others counts with the time that it has taken.
    return max(each * left - elapsed, each * (left - 1))


def check_video(
    store: Store, video: VideoName, as_of: AsOf = None, progress: Progress | None = None
) -> VideoCheck:
    """Check the event graph and the stored images of a video for errors.

    It looks for clips without a segment, segments without their clips, edges without their
    segments or evidence, cycles in time, contradicting edges, and images that are missing or
    damaged. The exit code is 1 if it finds any.

    Examples:
      homer check talk
      homer check talk --as-of 10:00 --json

    Raises:
        NotFound: there is no such video.
    """
    # A stream whose process was killed would count as being watched for ever.
    end_interrupted_streams(store)
    return check_memory(store, video, as_of, progress)
