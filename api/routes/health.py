"""The health check and the documentation page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from domain.errors import DatabaseError
from store.database import Store
from telemetry.logs import log_error

CACHE_S = 1.0
"""Seconds for which a result of the check is reused."""


class DatabaseHealth:
    """Checks the database in a thread of its own; concurrent requests share one check."""

    def __init__(self, store: Store) -> None:
        self._store, self._check_lock = store, asyncio.Lock()
        self._checked_at, self._available = float("-inf"), False

    async def answers(self) -> bool:
        """Return whether the database answers; the log has the reason if it does not."""
        now = asyncio.get_running_loop().time
        async with self._check_lock:
            if now() - self._checked_at >= CACHE_S:
                # Not among the threads of requests: on a busy server none would be left.
                limiter = CapacityLimiter(1)
                self._available = await to_thread.run_sync(self._check, limiter=limiter)
                self._checked_at = now()
            return self._available

    def _check(self) -> bool:
        try:
            with self._store.begin() as session:
                session.connection()
        except DatabaseError as error:
            log_error(error)
            return False
        return True


router = APIRouter(tags=["this server"])
DATABASE_DOWN = "the database does not answer; the next request tries again\n"


class Health(BaseModel):
    """The server and its database answer."""

    status: str = "ok"


@router.get(
    "/health",
    summary="Health of the server and its database",
    response_model=Health,
    responses={
        503: {"description": "The database does not answer.", "content": {"text/plain": {}}}
    },
)
async def health(request: Request) -> Response | Health:
    """For monitoring: 200, or 503 while the database does not answer. Needs no key."""
    database: DatabaseHealth = request.app.state.database_health
    if await database.answers():
        return Health()
    return PlainTextResponse(DATABASE_DOWN, 503, {"Retry-After": "5"})


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """Return the documentation page, which loads nothing from other servers."""
    return HTMLResponse(docs_page(request.app.openapi()), headers=HEADERS)


# The documentation page: unlike Swagger UI it needs no scripts from other servers.

TEMPLATE = Path(__file__).parents[1] / "docs.page"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
}


def docs_page(schema: Mapping[str, Any]) -> str:
    """Render an OpenAPI description as an HTML page."""
    info = schema["info"]
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        title=escape(info["title"]),
        about=_paragraphs(info.get("description", "")),
        operations="\n".join(
            f"<section><h2>{escape(operation.get('summary', ''))}</h2>"
            f"<p><code>{escape(method.upper())} {escape(path)}</code></p>"
            f"{_paragraphs(operation.get('description', ''))}"
            f"{_parameters(operation.get('parameters', ()))}"
            f"{_body(schema, operation)}</section>"
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ),
    )


def _paragraphs(text: str) -> str:
    return "".join(
        f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph.strip()
    )


def _parameters(parameters: Any) -> str:
    items = "".join(
        f"<dt>{escape(parameter['name'])}</dt><dd>{escape(parameter.get('description', ''))}</dd>"
        for parameter in parameters
        if parameter["in"] != "header"
    )
    return f"<dl>{items}</dl>" if items else ""


def _body(schema: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    name = content["schema"]["$ref"].rpartition("/")[2]
    model = schema["components"]["schemas"][name]
    fields = [{"in": "body", "name": key, **field} for key, field in model["properties"].items()]
    examples_json = (json.dumps(field, indent=2) for field in model.get("examples", ()))
    examples = "".join(f"<pre>{escape(field)}</pre>" for field in examples_json)
    return f"<h3>Body (JSON)</h3>{_parameters(fields)}{examples}"
