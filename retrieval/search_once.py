"""One search over named videos, for ``homer search`` and the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from domain.asking import Mode
from domain.errors import InputError
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.time import TimeSpan
from retrieval.images_alike import ExampleImage, images_alike
from retrieval.retrievers import Retrievers
from store.queries.clips import memory_view
from store.queries.videos import find_video, list_videos

if TYPE_CHECKING:
    from store.database import Store


def search_once(
    store: Store,
    retrievers: Retrievers,
    mode: Mode,
    query: str,
    videos: Sequence[str] = (),
    as_of_ms: int | None = None,
    focus: int | None = None,
    span: TimeSpan | None = None,
) -> tuple[Retrieval, dict[str, str]]:
    """Search the memory once; return the result, and the titles of all videos by id.

    Args:
        mode: EVENT, VIDEO, KEYFRAME, or NEIGHBOR, which needs a focus.
        query: The query; a search for the images of a time needs none.
        videos: Ids, unambiguous prefixes or titles; all videos if empty.
        as_of_ms: Milliseconds of video time; None: the end.
        focus: The id of the segment to search from.
        span: For KEYFRAME: the time of the images, instead of those closest to the query.

    Raises:
        InputError: The query is empty, nothing has been watched yet, or NEIGHBOR has no focus.
        NotFound: No video has one of the names, or no neighbour has that label.
        Ambiguous: Several videos match a name.
    """
    wanted = query if query.strip() or span is None else str(span)
    if not wanted.strip():
        raise InputError("the query is empty")
    view, titles = view_of_names(store, videos, as_of_ms)
    return retrievers.search(view, mode, wanted, focus, span=span), titles


def search_alike(
    store: Store,
    example: Callable[[MemoryView], ExampleImage],
    videos: Sequence[str] = (),
    as_of_ms: int | None = None,
) -> tuple[Retrieval, dict[str, str]]:
    """Search for images that look like an example; return as ``search_once`` does.

    Args:
        example: Returns the example, given the view.
        videos: Ids, unambiguous prefixes or titles; all videos if empty.
        as_of_ms: Milliseconds of video time; None: the end.

    Raises:
        InputError: Nothing has been watched yet, or the example cannot be read.
        NotFound: No video has one of the names, or the example is not in view.
        Ambiguous: Several videos match a name.
    """
    view, titles = view_of_names(store, videos, as_of_ms)
    return images_alike(store, view, example(view)), titles


def view_of_names(
    store: Store, videos: Sequence[str], as_of_ms: int | None
) -> tuple[MemoryView, dict[str, str]]:
    """Return the view, and the titles of all videos by id."""
    with store.begin() as session:
        titles = {video.id: video.title for video in list_videos(session)}
        names = [find_video(session, name).id for name in videos] or list(titles)
        if not names:
            raise InputError("nothing has been watched yet: homer ingest FILE")
        return memory_view(session, names, as_of_ms), titles
