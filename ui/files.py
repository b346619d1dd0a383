"""Videos and images over HTTP: named by ids that the store knows, never by paths."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from domain.errors import HomerError
from store.database import Store, open_store
from store.home import Home
from store.queries.videos import find_video

if TYPE_CHECKING:
    from starlette.requests import Request

HEX = frozenset("0123456789abcdef")


@cache
def shared_store() -> Store:
    """The store that all requests of this process use."""
    return open_store(Home.default())


def routes() -> list[Route]:
    """``/video/ID`` (parts of it too, so that a player can seek) and ``/image/SHA256``."""
    return [Route("/video/{video}", _video), Route("/image/{sha}", _image)]


def _video(request: Request) -> Response:
    """The file that the video was watched from, where it still is."""
    name = request.path_params["video"]
    path = _path_of(name) if _is_hex(name, 16) else None
    if path is None or not path.is_file():
        return PlainTextResponse("the file is not there any more", status_code=404)
    return FileResponse(path)


def _image(request: Request) -> Response:
    """A stored JPEG. What a digest names never changes, so a browser may keep it."""
    sha = request.path_params["sha"]
    try:
        data = shared_store().blobs.get(sha) if _is_hex(sha, 64) else b""
    except (HomerError, OSError):
        data = b""
    if not data:
        return PlainTextResponse("no such image", status_code=404)
    return Response(data, media_type="image/jpeg", headers={"Cache-Control": "max-age=31536000"})


def _path_of(video: str) -> Path | None:
    try:
        with shared_store().begin() as session:
            found = find_video(session, video)
    except HomerError:
        return None
    return Path(found.path) if found.path and found.id == video else None


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= HEX
