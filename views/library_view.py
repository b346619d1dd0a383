"""The library as its page shows it: a page of videos, how long watching will take, what goes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from domain.media import Video
from store.database import Store
from store.queries import clips
from store.queries import library_pages as stored
from store.queries.clips import StoredClip
from store.queries.library_pages import Holdings, ListedVideo, WatchRate
from store.queries.videos import WATCHING
from views.library import resolve

LATELY = 20
"""Clips from which the pace is taken."""

__all__ = [
    "Holdings",
    "ListedVideo",
    "being_watched",
    "failures",
    "holdings",
    "pace",
    "page_of_videos",
    "seconds_left",
]


def page_of_videos(
    store: Store, offset: int, limit: int, words: str = ""
) -> tuple[list[ListedVideo], int]:
    """A page of the library by title, and how many videos there are."""
    with store.begin(snapshot=True) as session:
        found = stored.shelf_page(session, offset, limit, words)
        return found, stored.shelf_size(session, words)


def being_watched(store: Store, limit: int, held: Collection[str] = ()) -> list[ListedVideo]:
    """Videos not watched to their end, by title: ``limit`` of them, and all those of ``held``."""
    with store.begin(snapshot=True) as session:
        found = stored.shelf_page(session, 0, limit, state=WATCHING)
        missed = set(held) - {one.id for one in found}
        if not missed:
            return found
        return found + stored.shelf_page(session, state=WATCHING, only=missed)


def failures(store: Store, video: str, limit: int | None = None) -> list[StoredClip]:
    """The first ``limit`` clips of a video that could not be watched, with the reason of each."""
    with store.begin() as session:
        return clips.failed_clips(session, video, limit)


def pace(store: Store, video: str) -> WatchRate | None:
    """How fast a video was watched lately; None for fewer than two clips."""
    with store.begin() as session:
        return stored.pace_of(session, video, LATELY)


def seconds_left(found: WatchRate | None, left: int, now: datetime) -> float | None:
    """How long ``left`` clips will take at that pace; None where that cannot be told.

    A clip that has taken longer than the others until now counts as slow as it is.
    """
    if found is None or left <= 0:
        return None
    each = (found.last - found.first).total_seconds() / (found.clips - 1)
    begun = max(0.0, (now - found.last).total_seconds())
    return max(each * left - begun, each * (left - 1))


def holdings(store: Store, name: str) -> tuple[Video, Holdings]:
    """A video, and what goes when it is deleted.

    Raises:
        NotFound: none goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        video = resolve(session, name)
        return video, stored.holdings_of(session, video.id)
