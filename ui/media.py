"""Serve original videos and stored images over HTTP, by id and with a signature."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from auth.signed_links import is_signed
from domain.errors import HomerError
from perception.originals import original_file
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.videos import find_video

if TYPE_CHECKING:
    from starlette.requests import Request

    from domain.media import Video

HEX_DIGITS = frozenset("0123456789abcdef")


@cache
def shared_store() -> Store:
    """Return the store that all requests of this process share."""
    return open_store(Home.default())


def database_answers() -> bool:
    """Return whether the database answers; start the embedded one if it does not run."""
    try:
        if not os.environ.get("HOMER_DATABASE_URL"):
            EmbeddedPostgres(Home.default()).start()
        with shared_store().begin() as session:
            return session.connection() is not None
    except HomerError:
        return False


def original_of(video: Video) -> Path | None:
    """Return the file of a video, or None if it is missing or has changed."""
    return original_file(Home.default(), video.id, video.path)


def media_routes() -> list[Route]:
    """Return the signed routes ``/video/ID``, ``/recording/SHA256`` and ``/image/SHA256``.

    The first two serve byte ranges.
    """
    return [
        Route("/video/{video}", _video),
        Route("/recording/{sha}", _recording),
        Route("/image/{sha}", _image),
    ]


def _video(request: Request) -> Response:
    """Serve the file of a video."""
    video_id = request.path_params["video"]
    if not _is_allowed(request):
        return _expired()
    path = _original_by_id(video_id) if _is_hex(video_id, 16) else None
    if path is None:
        return PlainTextResponse("the file is missing or has changed", status_code=404)
    return FileResponse(path)


def _recording(request: Request) -> Response:
    """Serve the recording of a clip of a stream."""
    sha = request.path_params["sha"]
    if not _is_allowed(request):
        return _expired()
    path = Path(shared_store().blobs.path(sha)) if _is_hex(sha, 64) else None
    if path is None or not path.is_file():
        return PlainTextResponse("no such recording", status_code=404)
    return FileResponse(path, media_type="video/mp4")


def _image(request: Request) -> Response:
    """Serve a stored JPEG, which browsers may cache since its digest names its content.

    Shared caches may not: they would serve it to users who are not signed in.
    """
    sha = request.path_params["sha"]
    if not _is_allowed(request):
        return _expired()
    try:
        data = shared_store().blobs.get(sha) if _is_hex(sha, 64) else b""
    except (HomerError, OSError):
        data = b""
    if not data:
        return PlainTextResponse("no such image", status_code=404)
    return Response(
        data, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=31536000"}
    )


def _original_by_id(video_id: str) -> Path | None:
    try:
        with shared_store().begin() as session:
            video = find_video(session, video_id)
    except HomerError:
        return None
    return original_of(video) if video.id == video_id else None


def _is_allowed(request: Request) -> bool:
    """Return whether the link is signed by this process and has not expired."""
    params = request.query_params
    return is_signed(request.url.path, params.get("until", ""), params.get("key", ""))


def _expired() -> Response:
    return PlainTextResponse("this link has expired: open the page again", status_code=403)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= HEX_DIGITS


def stored_image(store: Store, blob: str | None) -> bytes:
    """Return the bytes of a stored image; empty if it is missing or damaged."""
    try:
        return store.blobs.get(blob) if blob else b""
    except (HomerError, OSError):
        return b""
