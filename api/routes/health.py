"""The health check and the documentation page."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from api.database_health import DatabaseHealth
from api.docs_page import HEADERS, docs_page

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
