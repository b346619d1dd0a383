"""The health check and the documentation page."""

from __future__ import annotations

import asyncio

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from api.docs_page import HEADERS, docs_page
from domain.errors import DatabaseError, HomerError
from store.database import Store
from telemetry.logs import log_error

# Check whether the database answers, at most once a second.

CACHE_S = 1.0
"""Seconds for which a result is reused."""


class DatabaseHealth:
    """Checks the database in a thread of its own; concurrent requests share one check."""

    def __init__(self, store: Store) -> None:
        self._store, self._check_lock = store, asyncio.Lock()
        self._checked_at, self._available = float("-inf"), False

    async def answers(self) -> bool:
        """Return whether the database answers; the log has the reason if it does not."""
        async with self._check_lock:
            if self._now() - self._checked_at >= CACHE_S:
                limiter = CapacityLimiter(1)
                self._available = await to_thread.run_sync(_check, self._store, limiter=limiter)
                self._checked_at = self._now()
            return self._available

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _check(store: Store) -> bool:
    try:
        with store.begin() as session:
            session.connection()
    except HomerError as error:
        if not isinstance(error, DatabaseError):
            raise
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
