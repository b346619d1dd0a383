"""Adding videos, and how far their watching is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from api.app_state import ApiState, Desk
from api.folders import allowed_file, refuse_address
from api.problems import Crowded
from domain.audit import Deed
from domain.errors import Busy, InputError, NotFound
from flows.jobs import Job, Jobs, new_id
from services.job_status import JobState
from services.prefect import PrefectServer
from store.queries.audit import record_deed

router = APIRouter(tags=["watching"])

MOST_JOBS = 4
"""Processes that watch at a time on behalf of this API; each takes memory of its own."""
WAIT_S = 60


class Add(BaseModel):
    """A video that lies where the server can read it."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"path": "talks/talk.mp4"}]}
    )

    path: str = Field(
        default="",
        max_length=4096,
        description="The file, whole or from one of the folders that the operator allowed.",
    )
    url: str | None = Field(
        default=None, max_length=4096, description="Always refused: addresses are not fetched."
    )
    profile: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Set of models; the server's default."
    )
    again: bool = Field(default=False, description="Try clips too that failed for good.")


class JobTold(BaseModel):
    """A process that watches files. GET /videos has the video, from its first clip on."""

    id: str
    state: str = Field(
        description="watching, done, paused, failed, killed, or unknown: begun elsewhere"
    )
    files: list[str] = Field(description="from the folders that the operator allowed")
    errors: list[str] = Field(description="what it complained of")
    said: str = Field(description="the last that it said")


@router.post("/videos", status_code=202, summary="Add a video")
def add(desk: Desk, body: Add, response: Response) -> JobTold:
    """Have a file watched into memory, by the same `homer ingest` as the app has it watched.

    It goes on in a process of its own, whatever becomes of the server: `Location` says where to
    see how far it is. What is in memory already is passed over. With a Prefect server
    (`PREFECT_API_URL`, or `homer up`) it is a flow run there, else it is watched directly. Only
    files under the folders of `homer serve --videos FOLDER` may be added; addresses are refused.
    `homer audit` says who had it added, by the id of the job, and later by the id of the video.
    """
    for given in (body.url or "", body.path):
        refuse_address(given)
    if body.url is not None or not body.path.strip():
        raise InputError("give the `path` of a file under a folder that the operator allowed")
    path, profile = allowed_file(desk.folders, body.path), desk.named(body.profile)
    jobs, direct = Jobs(desk.store.home), not _has_prefect(desk)
    with jobs.alone(), desk.store.begin() as session:
        _refuse_more(jobs, str(path))
        job = new_id()
        # Before it begins: where the database is away, nothing runs that is not on record.
        record_deed(session, Deed.ADDED, job)
        jobs.start([path], profile, again=body.again, direct=direct, job=job)
    response.headers["Location"] = f"/jobs/{job}"
    return _told(desk, _job(desk, job))


def _refuse_more(jobs: Jobs, path: str) -> None:
    running = [one for one in jobs.every() if one.running]
    mine = next((one for one in running if one.watches(path)), None)
    if mine is not None:
        raise Busy(f"this file is being watched already: GET /jobs/{mine.id}")
    if sum(one.stage is JobState.WATCHING for one in running) >= MOST_JOBS:
        raise Crowded(f"{MOST_JOBS} processes are watching, and no more go at a time", WAIT_S)


def _has_prefect(desk: ApiState) -> bool:
    """Whether there is a server of Prefect's; none is begun for a request."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    return PrefectServer(desk.store.home).address() is not None


@router.get("/jobs", summary="What is being watched")
def jobs(desk: Desk) -> list[JobTold]:
    """What the API and the app have watched, and how it ended; the latest first."""
    return [_told(desk, one) for one in Jobs(desk.store.home).every()]


@router.get("/jobs/{name}", summary="How far one is")
def job(desk: Desk, name: Annotated[str, InPath(max_length=64, description="Its id.")]) -> JobTold:
    """One process that watches, and what it complained of."""
    return _told(desk, _job(desk, name))


def _job(desk: ApiState, name: str) -> Job:
    found = next((one for one in Jobs(desk.store.home).every() if one.id == name), None)
    if found is None:
        raise NotFound("there is no such job: GET /jobs lists them")
    return found


def _told(desk: ApiState, one: Job) -> JobTold:
    tops = [*(folder.resolve() for folder in desk.folders), *(Path(f).parent for f in one.sources)]

    def told(text: str) -> str:
        """The same, with paths from the folders on: where those lie is nobody's business."""
        for top in tops:
            text = text.replace(f"{top}/", "")
        return text

    return JobTold(
        id=one.id,
        state=one.stage.value,
        files=[told(file) for file in one.sources],
        errors=[told(error) for error in one.errors[-10:]],
        said=told(one.said[-1]) if one.said else "",
    )
