"""Whether the server lives, and how it is used."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from api.database_health import DatabaseHealth
from api.manual import SAFE, manual

router = APIRouter(tags=["this server"])
GONE = "the database does not answer; it is tried again when it is asked for\n"


class Health(BaseModel):
    """The server answers, and so does its database."""

    status: str = "ok"


@router.get(
    "/health",
    summary="Does the server live, and its database?",
    response_model=Health,
    responses={503: {"description": "The database is gone.", "content": {"text/plain": {}}}},
)
async def health(request: Request) -> Response | Health:
    """For whoever watches over the server: 200, or 503 while the database is gone. Needs no key."""
    pulse: DatabaseHealth = request.app.state.pulse
    if await pulse.answers():
        return Health()
    return PlainTextResponse(GONE, 503, {"Retry-After": "5"})


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """How the API is used, for people; nothing of it is fetched from elsewhere."""
    return HTMLResponse(manual(request.app.openapi()), headers=SAFE)
