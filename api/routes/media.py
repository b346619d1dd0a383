"""Images of keyframes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from api.app_state import State
from domain.errors import BlobGone, NotFound
from store.queries.keyframes import frame_of
from telemetry.logs import log_error

router = APIRouter(tags=["images"])
JPEG = {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}


@router.get(
    "/media/keyframes/{video}/{frame}",
    summary="The image of a keyframe",
    response_class=Response,
    responses={200: {"description": "The image.", "content": JPEG}},
)
def keyframe(
    state: State,
    video: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The video's id.")],
    frame: Annotated[int, Path(ge=1, le=10**15, description="The keyframe's number: 7 of k7.")],
) -> Response:
    """A keyframe as JPEG: the target of `image` in citations and search results.

    The image of a number never changes, so clients may cache it; shared caches may not.
    """
    with state.store.begin() as session:
        found = frame_of(session, video, frame)
    if found is None:
        raise NotFound(f"video {video} has no keyframe {frame}")
    try:
        data = state.store.blobs.get(found.blob)
    except (BlobGone, OSError) as error:
        log_error(error)
        raise NotFound(f"the image of keyframe {frame} is lost or damaged") from error
    headers = {"Cache-Control": "private, max-age=31536000"}
    return Response(data, media_type="image/jpeg", headers=headers)
