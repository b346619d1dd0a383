"""Serve original videos and stored images over HTTP, by id and with a signature."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from auth.connections import CSP, SANDBOX
from auth.signing_in import is_signed
from domain.errors import HomerError
from perception.source import media_type, original_file, previews_of
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.blobs import unused_blobs
from store.queries.rights import store_for
from store.queries.videos import find_video

if TYPE_CHECKING:
    from starlette.requests import Request


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


UserOf = Callable[[Mapping[str, str]], str | None]
"""Returns the name in grants of the user whose cookies are given; None is the operator."""


def media_routes(user_of: UserOf) -> list[Route]:
    """Return the signed routes of videos, previews, recordings and images.

    All but the last serve byte ranges.
    """

    def served(serve: Callable[[Store, str], Response], name: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            params = request.query_params
            if not is_signed(request.url.path, params.get("until", ""), params.get("key", "")):
                return PlainTextResponse(
                    "this link has expired: open the page again", status_code=403
                )
            try:
                # A link is good only for who may see the video now.
                store = store_for(shared_store(), user_of(request.cookies))
                response = serve(store, request.path_params[name])
            except HomerError:
                return _missing()
            response.headers.update({CSP: SANDBOX, "X-Content-Type-Options": "nosniff"})
            return response

        return endpoint

    return [
        Route("/video/{video}", served(_video, "video")),
        Route("/preview/{part}", served(_preview, "part")),
        Route("/recording/{sha}", served(_recording, "sha")),
        Route("/image/{sha}", served(_image, "sha")),
    ]


def _video(store: Store, video_id: str) -> Response:
    path = _original_by_id(store, video_id) if _is_hex(video_id, 16) else None
    if path is None:
        return _missing()
    return FileResponse(path, media_type=media_type(path))


def _preview(store: Store, part: str) -> Response:
    """Serve a preview that the page made: ``ID-START``, its video and start in milliseconds."""
    video_id, _, number = part.partition("-")
    path = _original_by_id(store, video_id) if _is_hex(video_id, 16) else None
    found = previews_of(store.home, video_id).glob(f"*-{number}.mp4") if number.isdecimal() else ()
    kept = next(iter(found), None) if path else None
    return FileResponse(kept, media_type="video/mp4") if kept else _missing()


def _recording(store: Store, sha: str) -> Response:
    path = Path(store.blobs.path(sha)) if _is_visible(store, sha) else None
    if path is None or not path.is_file():
        return _missing()
    return FileResponse(path, media_type="video/mp4")


def _image(store: Store, sha: str) -> Response:
    """Serve a stored JPEG, which browsers may cache since its digest names its content."""
    data = stored_image(store, sha) if _is_visible(store, sha) else b""
    if not data:
        return _missing()
    # Shared caches may not keep it: they would serve it to users who are not signed in.
    return Response(
        data, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=31536000"}
    )


def _is_visible(store: Store, sha: str) -> bool:
    """Return whether it names a blob; for a viewer, one of a video that they may see."""
    if not _is_hex(sha, 64) or store.may_change:
        return _is_hex(sha, 64)
    with store.begin() as session:
        return not unused_blobs(session, [sha])


def _original_by_id(store: Store, video_id: str) -> Path | None:
    with store.begin() as session:
        video = find_video(session, video_id)
    # Titles and beginnings of ids find a video too: an address is a whole id.
    return original_file(store.home, video.id, video.path) if video.id == video_id else None


def _missing() -> Response:
    return PlainTextResponse("the file is missing or has changed", status_code=404)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= HEX_DIGITS


def stored_image(store: Store, blob: str | None) -> bytes:
    """Return the bytes of a stored image; empty if it is missing or damaged."""
    try:
        return store.blobs.get(blob) if blob else b""
    except (HomerError, OSError):
        return b""
