"""Videos and images over HTTP: named by ids that the store knows, never by paths."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from auth.signed_links import is_signed
from domain.errors import HomerError
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.videos import find_video
from views.originals import original_file

if TYPE_CHECKING:
    from starlette.requests import Request

    from domain.media import Video

HEX = frozenset("0123456789abcdef")


@cache
def shared_store() -> Store:
    """The store that all requests of this process use."""
    return open_store(Home.default())


def reachable() -> bool:
    """Whether the database answers; the embedded one is started where it does not run."""
    try:
        if not os.environ.get("HOMER_DATABASE_URL"):
            EmbeddedPostgres(Home.default()).start()
        with shared_store().begin() as session:
            return session.connection() is not None
    except HomerError:
        return False


def file_of(video: Video) -> Path | None:
    """The file that a video was watched from, where it still is and is still the same."""
    return original_file(Home.default(), video.id, video.path)


def routes() -> list[Route]:
    """``/video/ID`` (parts of it too, so that a player can seek) and ``/image/SHA256``, signed."""
    return [Route("/video/{video}", _video), Route("/image/{sha}", _image)]


def _video(request: Request) -> Response:
    """The file that the video was watched from, where it still is."""
    name = request.path_params["video"]
    if not _may(request):
        return _ended()
    path = _path_of(name) if _is_hex(name, 16) else None
    if path is None:
        return PlainTextResponse("the file is not there any more", status_code=404)
    return FileResponse(path)


def _image(request: Request) -> Response:
    """A stored JPEG. What a digest names never changes, so a browser may keep it.

    No proxy may: it would hand it to those who are not signed in.
    """
    sha = request.path_params["sha"]
    if not _may(request):
        return _ended()
    try:
        data = shared_store().blobs.get(sha) if _is_hex(sha, 64) else b""
    except (HomerError, OSError):
        data = b""
    if not data:
        return PlainTextResponse("no such image", status_code=404)
    return Response(
        data, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=31536000"}
    )


def _path_of(video: str) -> Path | None:
    try:
        with shared_store().begin() as session:
            found = find_video(session, video)
    except HomerError:
        return None
    return file_of(found) if found.id == video else None


def _may(request: Request) -> bool:
    """Whether the link is one that a page of this app gave, and has not ended."""
    told = request.query_params
    return is_signed(request.url.path, told.get("until", ""), told.get("key", ""))


def _ended() -> Response:
    return PlainTextResponse("this link has ended: open the page again", status_code=403)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= HEX
