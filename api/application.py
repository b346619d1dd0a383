"""The API as one ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette.middleware import Middleware

from api.app_state import ApiState
from api.auth import AccessRules, ApiAuth
from api.door import InSeconds, add_acts
from api.limits import BODY_S, RequestLimits
from api.problems import ERROR_RESPONSES, add_error_handlers
from api.routes import chat, health, ingestion, media, questions
from api.routes.health import DatabaseHealth
from auth.connections import SafeHeaders

ABOUT = """Ask long videos questions over HTTP. Homer watched them into a memory; answers come with
the moments that support them.

Begin with GET /videos, then POST /questions. Where the server has keys, send one with every
request: `Authorization: Bearer KEY`.

Times are seconds of video time; `as_of` asks as if nothing after that moment had been seen yet.
Lists are paginated: pass `next` as `offset`. Errors are problem details (RFC 9457): `detail` says
what went wrong, `help` what to do, `code` is for programs."""

POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"
"""Of responses that are not HTML pages."""

MAX_THREADS = 12
"""Concurrent requests that use the store, which has more connections than that."""
SPARE_THREADS = 4


def make_app(state: ApiState, rules: AccessRules, body_s: float = BODY_S) -> FastAPI:
    """Build the application; see ``guards``."""
    app = FastAPI(
        title="Homer",
        description=ABOUT,
        version=version("homer-video"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=InSeconds,
        lifespan=_lifespan,
        middleware=guards(rules, body_s),
        responses=ERROR_RESPONSES,
    )
    app.state.api_state = state
    add_error_handlers(app)
    for module in (health, ingestion, questions, chat, media):
        app.include_router(module.router)
    add_acts(app)
    return app


def guards(rules: AccessRules, body_s: float) -> list[Middleware]:
    """Return the middleware of a server.

    Requests are authenticated first; then their body is read, within ``body_s`` seconds; only then
    do they count against the limit of concurrent requests.
    """
    return [
        Middleware(SafeHeaders, policy=POLICY),
        Middleware(ApiAuth, rules=rules),
        Middleware(RequestLimits, body_s=body_s),
    ]


class DetachedThreadPool(ThreadPoolExecutor):
    """Threads that are not joined when the event loop ends: each step of a run is recorded."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new work without waiting for what runs."""
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: ApiState = app.state.api_state
    app.state.database_health = DatabaseHealth(state.store)
    async with answering(state):
        yield


@asynccontextmanager
async def answering(state: ApiState) -> AsyncIterator[None]:
    """Give the event loop its threads; at the end stop running questions."""
    current_default_thread_limiter().total_tokens = MAX_THREADS
    threads = DetachedThreadPool(state.questions.limit + SPARE_THREADS, "question")
    asyncio.get_running_loop().set_default_executor(threads)
    yield
    state.questions.closing.set()
