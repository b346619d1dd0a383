"""One search over named videos: what ``homer search`` and the app's search do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.asking import Mode
from domain.errors import InputError
from retrieval.result import Retrieval
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
) -> tuple[Retrieval, dict[str, str]]:
    """Search the memory once; returns what was found, and the titles of all videos by id.

    Args:
        store: the memory.
        retrievers: search it.
        mode: EVENT, VIDEO, KEYFRAME, or NEIGHBOR, which needs a focus.
        query: what is looked for.
        videos: ids, unambiguous beginnings or titles; none is all of them.
        as_of_ms: milliseconds of video time; None is the end.
        focus: the id of the segment to search from.

    Raises:
        InputError: the query is empty, nothing has been watched yet, or NEIGHBOR has no focus.
        NotFound: no video goes by one of the names, or no neighbour by that label.
        Ambiguous: several do.
    """
    if not query.strip():
        raise InputError("the query is empty")
    with store.begin() as session:
        titles = {one.id: one.title for one in list_videos(session)}
        names = [find_video(session, name).id for name in videos] or list(titles)
        if not names:
            raise InputError("nothing has been watched yet: homer ingest FILE")
        view = memory_view(session, names, as_of_ms)
    return retrievers.search(view, mode, query, focus), titles
