"""Read models of the library's page: videos, remaining time, and what a deletion removes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from domain.media import Video
from store.database import Store
from store.queries import clips
from store.queries import library_pages as stored
from store.queries.clips import StoredClip
from store.queries.library_pages import Holdings, LibraryEntry, WatchRate
from store.queries.videos import WATCHING
from views.library import resolve_video

RECENT_CLIPS = 20
"""How many clips the rate is computed from."""

__all__ = [
    "Holdings",
    "LibraryEntry",
    "being_watched",
    "failed_clips_of",
    "page_of_videos",
    "seconds_left",
    "video_holdings",
    "watch_rate",
]


def page_of_videos(
    store: Store, offset: int, limit: int, words: str = ""
) -> tuple[list[LibraryEntry], int]:
    """Return a page of the library by title, and the number of videos."""
    with store.begin(snapshot=True) as session:
        page = stored.videos_page(session, offset, limit, words)
        return page, stored.count_videos(session, words)


def being_watched(store: Store, limit: int, held: Collection[str] = ()) -> list[LibraryEntry]:
    """Return unfinished videos by title: ``limit`` of them, and all those of ``held``."""
    with store.begin(snapshot=True) as session:
        page = stored.videos_page(session, 0, limit, state=WATCHING)
        missing = set(held) - {video.id for video in page}
        if not missing:
            return page
        return page + stored.videos_page(session, state=WATCHING, only=missing)


def failed_clips_of(store: Store, video: str, limit: int | None = None) -> list[StoredClip]:
    """Return the first ``limit`` failed clips of a video, with the reason of each."""
    with store.begin() as session:
        return clips.failed_clips(session, video, limit)


def watch_rate(store: Store, video: str) -> WatchRate | None:
    """Return how fast a video was watched recently; None for fewer than two clips."""
    with store.begin() as session:
        return stored.watch_rate(session, video, RECENT_CLIPS)


def seconds_left(rate: WatchRate | None, left: int, now: datetime) -> float | None:
    """Return the seconds that ``left`` clips will take at that rate; None if not known.

    A current clip that has taken longer than the others counts with the time that it has taken.
    """
    if rate is None or left <= 0:
        return None
    each = (rate.last - rate.first).total_seconds() / (rate.clips - 1)
    elapsed = max(0.0, (now - rate.last).total_seconds())
    return max(each * left - elapsed, each * (left - 1))


def video_holdings(store: Store, name: str) -> tuple[Video, Holdings]:
    """Return a video, and what its deletion removes.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        video = resolve_video(session, name)
        return video, stored.video_holdings(session, video.id)
