"""Images: keyframes, and frames that strategies kept."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from api.app_state import ApiState, State
from domain.errors import BlobGone, NotFound
from store.queries.keyframes import frame_of, kept_frame
from telemetry.logs import log_error

router = APIRouter(tags=["images"])
IMAGE_TYPE = "image/jpeg"
JPEG = {IMAGE_TYPE: {"schema": {"type": "string", "format": "binary"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {200: {"description": "The image.", "content": JPEG}}

VideoId = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The video's id.")]


@router.get(
    "/media/keyframes/{video}/{frame}",
    summary="The image of a keyframe",
    response_class=Response,
    responses=RESPONSES,
)
def keyframe(
    state: State,
    video: VideoId,
    frame: Annotated[int, Path(ge=1, le=10**15, description="The keyframe's number: 7 of k7.")],
) -> Response:
    """A keyframe as JPEG: the target of `image` in citations and search results.

    The image of a number never changes, so clients may cache it; shared caches may not.
    """
    with state.store.begin() as session:
        found = frame_of(session, video, frame)
    return _image(state, found.blob if found else None, f"keyframe {frame}", video)


@router.get(
    "/media/frames/{video}/{frame}",
    summary="The image of a frame that a strategy kept",
    response_class=Response,
    responses=RESPONSES,
)
def kept(
    state: State,
    video: VideoId,
    frame: Annotated[int, Path(ge=1, le=10**15, description="The frame's number: 7 of f7.")],
) -> Response:
    """A kept frame as JPEG, as for keyframes."""
    with state.store.begin() as session:
        found = kept_frame(session, video, frame)
    return _image(state, found.blob if found else None, f"frame {frame}", video)


def _image(state: State, blob: str | None, name: str, video: str) -> Response:
    headers = {"Cache-Control": "private, max-age=31536000"}
    data = image_bytes(state, blob, name, video)
    return Response(data, media_type=IMAGE_TYPE, headers=headers)


def image_bytes(state: ApiState, blob: str | None, name: str, video: str) -> bytes:
    """Return a stored image as JPEG.

    Raises:
        NotFound: there is none, or its file is lost.
    """
    if blob is None:
        raise NotFound(f"video {video} has no {name}")
    try:
        return state.store.blobs.get(blob)
    except (BlobGone, OSError) as error:
        log_error(error)
        raise NotFound(f"the image of {name} is lost or damaged") from error
