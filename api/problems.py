"""Errors as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from domain.errors import (
    AccessDenied,
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
from domain.words import make_storable
from telemetry.logs import log_error

MEDIA_TYPE = "application/problem+json"
INTERNAL_ERROR = "an internal error: see the log of the server (`homer doctor` names its file)"


class RequestRefused(HomerError):
    """A request is refused for a reason that no other error of Homer's covers."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, help: str = "") -> None:  # noqa: A002 - the field's name
        super().__init__(detail)
        self.status, self.code, self.help = status, code, help
        self.headers: dict[str, str] = {}


class TooManyRequests(RequestRefused):
    """A limit is reached; the client may try again after ``after_s`` seconds."""

    def __init__(self, detail: str, after_s: int = 5) -> None:
        hint = "wait as many seconds as Retry-After says, and try again"
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, "crowded", detail, hint)
        self.headers = {"Retry-After": str(after_s)}


class InvalidField(BaseModel):
    """An invalid field of a request: ``where`` it is, and ``what`` is wrong."""

    where: str
    what: str


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    type: str = Field(default="about:blank", description="always about:blank; see `code`")
    title: str = Field(description="the status in words")
    status: int
    detail: str = Field(description="what went wrong, for people")
    code: str = Field(description="the kind of error, for programs", examples=["not-found"])
    help: str = Field(default="", description="what to do")
    errors: tuple[InvalidField, ...] = Field(
        default=(), description="invalid fields of the request"
    )


_DATABASE_DETAIL = "the database, or an image in it, is not available at the moment"
"""Sent to clients instead of the driver's message, which may name hosts, users and folders."""
_CODES = {
    HTTPStatus.BAD_REQUEST: "bad-request",
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method-not-allowed",
    HTTPStatus.REQUEST_TIMEOUT: "request-timeout",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too-large",
}
_AMBIGUOUS_HINT = "give the whole id: GET /videos and /questions list them"
_BUSY_HINT = "wait until it is done, and try again"
_DATABASE_HINT = "wait until the database is back; the server's log has the details"
_MAPPING: tuple[tuple[type[HomerError], HTTPStatus, str, str], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND, "not-found", "GET /videos, /questions and /jobs list them"),
    (Ambiguous, HTTPStatus.CONFLICT, "ambiguous", _AMBIGUOUS_HINT),
    (AccessDenied, HTTPStatus.FORBIDDEN, "rights", "ask the operator of the server for the right"),
    (Busy, HTTPStatus.CONFLICT, "busy", _BUSY_HINT),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY, "input", "change the request; /docs has each"),
    (DatabaseError, HTTPStatus.SERVICE_UNAVAILABLE, "database", _DATABASE_HINT),
    (SetupError, HTTPStatus.SERVICE_UNAVAILABLE, "setup", "on the server: homer doctor"),
    (ModelError, HTTPStatus.BAD_GATEWAY, "model", "try again, or use another profile"),
    (BudgetExceeded, HTTPStatus.GATEWAY_TIMEOUT, "budget", "ask for less, or raise the limits"),
)


def to_problem(error: BaseException) -> Problem:
    """Convert an error to a problem; unknown errors reveal no details."""
    if isinstance(error, RequestValidationError):
        return invalid_request(error.errors())
    if isinstance(error, RequestRefused):
        return _problem(error.status, str(error), error.code, error.help)
    for kind, status, code, hint in _MAPPING:
        if isinstance(error, kind):
            detail = _DATABASE_DETAIL if kind is DatabaseError else str(error)
            return _problem(status, detail, code, hint)
    return _problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL_ERROR, "fault", "report it if it happens again"
    )


def _problem(status: int, detail: str, code: str, hint: str, *errors: InvalidField) -> Problem:
    title, detail = HTTPStatus(status).phrase, make_storable(detail)
    return Problem(title=title, status=status, detail=detail, code=code, help=hint, errors=errors)


def to_logged_problem(error: BaseException) -> Problem:
    """Convert an error to a problem, and log it if it is a fault of the server."""
    problem = to_problem(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, RequestRefused):
        log_error(error)
    return problem


def problem_response(error: BaseException) -> Response:
    problem = to_logged_problem(error)
    headers = dict(error.headers) if isinstance(error, RequestRefused) else {}
    # Clients of many kinds wait so long by themselves, and try again.
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", "5")
    return to_response(problem, headers)


def to_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response that must not be cached."""
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(
        problem.model_dump(mode="json"), problem.status, all_headers, media_type=MEDIA_TYPE
    )


def add_error_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error with a problem."""

    async def respond(_: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return problem_response(error)
        known = HTTPStatus(error.status_code)
        code = _CODES.get(known, "http")
        problem = _problem(known, str(error.detail), code, "/docs describes all requests")
        return to_response(problem, error.headers)

    for kind in (HomerError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, respond)


def invalid_request(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of a request with invalid fields, which pydantic found."""
    fields = [  # Without the invalid values themselves.
        InvalidField(
            where=make_storable(".".join(str(part)[:60] for part in error["loc"])),
            what=make_storable(str(error["msg"])[:300]),
        )
        for error in errors[:20]
    ]
    detail = "; ".join(f"{field.where}: {field.what}" for field in fields[:3])
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    hint = "/docs describes all requests"
    return _problem(status, detail or "the request is invalid", "request", hint, *fields)


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error: `detail` says what went wrong, `help` what to do.",
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
}
"""The error response of every operation, for the OpenAPI description."""
