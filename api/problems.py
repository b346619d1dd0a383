"""Errors as problem details (RFC 9457): what went wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from domain.errors import (
    Ambiguous,
    BudgetExceeded,
    Busy,
    DatabaseError,
    HomerError,
    InputError,
    ModelError,
    NotFound,
    SetupError,
)
from domain.texts import make_storable
from telemetry.logs import log_error

MEDIA_TYPE = "application/problem+json"
FAULT = "a fault in Homer: the log of the server says where (`homer doctor` names its file)"


class RequestRefused(HomerError):
    """The server will not do that, for a reason that lies outside of Homer's own errors."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, help: str = "") -> None:  # noqa: A002 - the field's name
        super().__init__(detail)
        self.status, self.code, self.help = status, code, help
        self.headers: dict[str, str] = {}


class Crowded(RequestRefused):
    """All places are taken: in ``after_s`` seconds one may be free."""

    def __init__(self, detail: str, after_s: int = 5) -> None:
        told = "wait for as many seconds as Retry-After says, and ask again"
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, "crowded", detail, told)
        self.headers = {"Retry-After": str(after_s)}


class InvalidField(BaseModel):
    """One thing that a request has wrong: ``where`` in it, and ``what``."""

    where: str
    what: str


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(default="about:blank", description="always that: `code` tells them apart")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="what went wrong, for people")
    code: str = Field(description="the same for programs", examples=["not-found"])
    help: str = Field(default="", description="what to do")
    errors: tuple[InvalidField, ...] = Field(
        default=(), description="what the request has wrong, if so"
    )


_AWAY = "the database, or an image that belongs to it, cannot be had at the moment"
"""All that clients are told: what the driver says may name hosts, users and folders."""
_CODES = {
    HTTPStatus.BAD_REQUEST: "bad-request",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method-not-allowed",
    HTTPStatus.REQUEST_TIMEOUT: "request-timeout",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
}
_BUSY = "wait until it is done, and ask again"
_DATABASE = "wait until the database is back; the operator of the server sees more in its log"
_KNOWN: tuple[tuple[type[HomerError], HTTPStatus, str, str], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND, "not-found", "GET /videos, /questions and /jobs list them"),
    (
        Ambiguous,
        HTTPStatus.CONFLICT,
        "ambiguous",
        "give the whole id: GET /videos and /questions list them",
    ),
    (Busy, HTTPStatus.CONFLICT, "busy", _BUSY),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY, "input", "change the request; /docs has each"),
    (DatabaseError, HTTPStatus.SERVICE_UNAVAILABLE, "database", _DATABASE),
    (SetupError, HTTPStatus.SERVICE_UNAVAILABLE, "setup", "on the server: homer doctor"),
    (ModelError, HTTPStatus.BAD_GATEWAY, "model", "ask again, or with another profile"),
    (BudgetExceeded, HTTPStatus.GATEWAY_TIMEOUT, "budget", "ask for less, or raise the limits"),
)


def problem_of(error: BaseException) -> Problem:
    """An error as a problem; of what is no error of Homer's nothing is told but that it is one."""
    if isinstance(error, RequestRefused):
        return _problem(error.status, str(error), error.code, error.help)
    for kind, status, code, told in _KNOWN:
        if isinstance(error, kind):
            detail = _AWAY if kind is DatabaseError else str(error)
            return _problem(status, detail, code, told)
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, FAULT, "fault", "report it if it comes again")


def _problem(status: int, detail: str, code: str, told: str, *faults: InvalidField) -> Problem:
    title = HTTPStatus(status).phrase
    told_storable = make_storable(detail)
    return Problem(
        title=title, status=status, detail=told_storable, code=code, help=told, errors=faults
    )


def noted(error: BaseException) -> Problem:
    """An error as a problem; faults of the server are logged, and not what it only will not do."""
    problem = problem_of(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, RequestRefused):
        log_error(error)
    return problem


def answered(error: BaseException) -> Response:
    """The response to a request that failed with ``error``."""
    problem = noted(error)
    headers = dict(error.headers) if isinstance(error, RequestRefused) else {}
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", "5")
    return respond(problem, headers)


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response, which nobody keeps."""
    told = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(
        problem.model_dump(mode="json"), problem.status, told, media_type=MEDIA_TYPE
    )


def answer_with_problems(app: FastAPI) -> None:
    """Has an app answer every error with a problem."""

    async def of_homer(_: Request, error: Exception) -> Response:
        return answered(error)

    app.add_exception_handler(HomerError, of_homer)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_request)


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for no other
    known = HTTPStatus(error.status_code)
    code = _CODES.get(known, "http")
    problem = _problem(known, str(error.detail), code, "/docs has what can be asked, and how")
    return respond(problem, error.headers)


async def _of_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for no other
    faults = [_fault(one) for one in error.errors()[:20]]
    detail = "; ".join(f"{one.where}: {one.what}" for one in faults[:3]) or "it is not understood"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return respond(_problem(status, detail, "request", "/docs has what can be asked", *faults))


def _fault(error: Mapping[str, Any]) -> InvalidField:
    """Where and what; not what was given, which may be anything."""
    where = ".".join(str(part)[:60] for part in error["loc"])
    return InvalidField(where=make_storable(where), what=make_storable(str(error["msg"])[:300]))


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Something went wrong: `detail` says what, `help` what to do.",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
}
"""For every operation: how its errors look."""
