"""Add videos, follow their ingestion, and show their images: keyframes and frames of strategies."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from api.door import ApiState, State
from api.problems import RequestRefused, TooManyRequests
from domain.errors import BlobGone, Busy, InputError, NotFound
from domain.rights import Deed
from domain.watching import IngestEstimate
from flows.addresses import is_address
from flows.estimate import estimate_file
from flows.jobs import Job, Jobs, new_id
from flows.uploads import first_file, paths_within
from flows.workspace import Workspace
from models.keys_and_packages import redacted_url
from services.daemon import JobState
from services.supervisor import PrefectServer
from store.queries.keyframes import frame_of, kept_frame
from store.queries.rights import record_deed
from telemetry.logs import log_error

router = APIRouter(tags=["watching"])

MAX_JOBS = 4
"""Limit of concurrent jobs of this API; each needs memory of its own."""
RETRY_AFTER_S = 60


class Add(BaseModel):
    """A video file that the server can read."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"path": "talks/talk.mp4"}]}
    )

    path: str = Field(
        default="",
        max_length=4096,
        description="The file: absolute, or relative to a folder that the operator allowed.",
    )
    url: str | None = Field(
        default=None, max_length=4096, description="Always refused: URLs are not fetched."
    )
    profile: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Set of models; the server's default."
    )
    again: bool = Field(default=False, description="Also retry clips that failed for good.")


class JobTold(BaseModel):
    """A job that watches files. GET /videos lists the video from its first clip on."""

    id: str
    state: str = Field(
        description="watching, done, paused, failed, killed, or unknown: started elsewhere"
    )
    files: list[str] = Field(description="paths relative to the allowed folders")
    errors: list[str] = Field(description="its error messages")
    said: str = Field(description="its last message")


@router.post("/videos", status_code=202, summary="Add a video")
def add(state: State, body: Add, response: Response) -> JobTold:
    """Start a job that watches a file into memory, as `homer ingest` does.

    The job is a process of its own, independent of the server; `Location` is its address. Clips
    that are in memory already are skipped. With a Prefect server (`PREFECT_API_URL`, or `homer up`)
    the job is a flow run there, else it runs directly. Only files in the folders of
    `homer serve --videos FOLDER` may be added; URLs are refused. `homer audit` records who added
    it, with the id of the job, and later with the id of the video.
    """
    path, profile = _allowed(state, body), state.profile_name(body.profile)
    home = state.store.home
    jobs = Jobs(home)
    # A request does not start a server of Prefect.
    direct = not os.environ.get("PREFECT_API_URL") and PrefectServer(home).address() is None
    with jobs.alone(), state.store.begin() as session:
        running = [one for one in jobs.every() if one.running]
        same = next((one for one in running if one.watches(str(path))), None)
        if same is not None:
            raise Busy(f"this file is being watched already: GET /jobs/{same.id}")
        if sum(one.stage is JobState.WATCHING for one in running) >= MAX_JOBS:
            raise TooManyRequests(f"{MAX_JOBS} jobs run already, which is the limit", RETRY_AFTER_S)
        name = new_id()
        # Recorded first: without a database no job runs unrecorded.
        record_deed(session, Deed.ADDED, name)
        jobs.start([path], profile, again=body.again, direct=direct, job=name)
    response.headers["Location"] = f"/jobs/{name}"
    return job(state, name)


@router.post("/videos/estimate", summary="Estimate what adding a video will take")
def estimate(state: State, body: Add) -> IngestEstimate:
    """Images, tokens, cost and time of watching a file, like `homer ingest --dry-run`.

    Three clips of it are perceived; no language model is called, and nothing is stored. The file is
    named as in `POST /videos`. One estimate is made at a time.
    """
    path, profile = _allowed(state, body), state.profile_name(body.profile)
    toolbox = state.toolbox(profile)
    workspace = Workspace(state.store.home, state.store, toolbox.profile, toolbox)
    with state.estimates.slot():
        try:
            return estimate_file(workspace, path, again=body.again)
        except InputError as error:
            message = _without_folders(state, [path.parent], str(error))
            raise InputError(message) from error


def _allowed(state: ApiState, body: Add) -> Path:
    """Return the file that a request names, in one of the allowed folders."""
    for text in (body.url or "", body.path):
        reject_url(text)
    if body.url is not None or not body.path.strip():
        raise InputError("give the `path` of a file in a folder that the operator allowed")
    return allowed_file(state.folders, body.path)


@router.get("/jobs", summary="List jobs")
def jobs(state: State) -> list[JobTold]:
    """The jobs of the API and the app, the latest first."""
    return [_job_body(state, job) for job in Jobs(state.store.home).every()]


@router.get("/jobs/{name}", summary="A job")
def job(
    state: State, name: Annotated[str, InPath(max_length=64, description="Its id.")]
) -> JobTold:
    """The state of a job, with its errors."""
    found = next((one for one in Jobs(state.store.home).every() if one.id == name), None)
    if found is None:
        raise NotFound("there is no such job: GET /jobs lists them")
    return _job_body(state, found)


def _job_body(state: ApiState, job: Job) -> JobTold:
    relative = partial(_without_folders, state, [Path(source).parent for source in job.sources])
    return JobTold(
        id=job.id,
        state=job.stage.value,
        files=[
            redacted_url(source) if is_address(source) else relative(source)
            for source in job.sources
        ],
        errors=[relative(error) for error in job.errors[-10:]],
        said=relative(job.said[-1]) if job.said else "",
    )


def _without_folders(state: ApiState, more: Sequence[Path], text: str) -> str:
    """Make paths in a text relative to the allowed folders, whose location is not disclosed."""
    for top in (*(folder.resolve() for folder in state.folders), *more):
        text = text.replace(f"{top}/", "")
    return text


# Only files of the folders that the operator named may be added.

_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
URL_REFUSED = (
    "URLs are not fetched: a client could make the server connect anywhere. Put the "
    "file into a folder of the server, or have its operator run `homer watch` on a stream"
)


class OutsideFolder(RequestRefused):
    """The path is outside the folders; the same error whether the file exists or not."""

    def __init__(self, folders: Sequence[Path]) -> None:
        serve_hint = "have the operator start the server with `homer serve --videos FOLDER`"
        hint = "give a path in a folder that the operator allowed" if folders else serve_hint
        detail = "the path is not in a folder that videos may be added from"
        super().__init__(HTTPStatus.FORBIDDEN, "outside", detail, hint)


def reject_url(text: str) -> None:
    """Raise an InputError if the text is a URL."""
    if _URL.match(text):
        raise InputError(URL_REFUSED)


def allowed_file(folders: Sequence[Path], given: str) -> Path:
    """Return a file by its path, absolute or relative to one of the folders; links are followed.

    Raises:
        OutsideFolder: it is not in any of them.
        NotFound: there is no file there.
    """
    candidates = paths_within(folders, given)
    if not candidates:
        raise OutsideFolder(folders)
    found = first_file(candidates)
    if found is None:
        raise NotFound("there is no such file in the allowed folders")
    return found


# Images.


images = APIRouter(tags=["images"])
IMAGE_TYPE = "image/jpeg"
JPEG = {IMAGE_TYPE: {"schema": {"type": "string", "format": "binary"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {200: {"description": "The image.", "content": JPEG}}

VideoId = Annotated[str, InPath(pattern="^[0-9a-f]{16}$", description="The video's id.")]


@images.get(
    "/media/keyframes/{video}/{frame}",
    summary="The image of a keyframe",
    response_class=Response,
    responses=RESPONSES,
)
def keyframe(
    state: State,
    video: VideoId,
    frame: Annotated[int, InPath(ge=1, le=10**15, description="The keyframe's number: 7 of k7.")],
) -> Response:
    """A keyframe as JPEG: the target of `image` in citations and search results.

    The image of a number never changes, so clients may cache it; shared caches may not.
    """
    with state.store.begin() as session:
        found = frame_of(session, video, frame)
    return _image(state, found.blob if found else None, f"keyframe {frame}", video)


@images.get(
    "/media/frames/{video}/{frame}",
    summary="The image of a frame that a strategy kept",
    response_class=Response,
    responses=RESPONSES,
)
def kept(
    state: State,
    video: VideoId,
    frame: Annotated[int, InPath(ge=1, le=10**15, description="The frame's number: 7 of f7.")],
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
