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
from api.database_health import DatabaseHealth
from api.limits import BODY_S, RequestLimits
from api.problems import DOCUMENTED, answer_with_problems
from api.routes import health, media, questions, search, videos, watching
from auth.headers import SafeHeaders

ABOUT = """Ask long videos questions over HTTP. Homer watched them into a memory; answers come with
the moments that support them.

Begin with GET /videos, then POST /questions. Where the server has keys, send one with every
request: `Authorization: Bearer KEY`.

Times are seconds of video time; `as_of` asks as if nothing after that moment had been seen yet.
Lists come a page at a time: give `next` as `offset`. What goes wrong is told as problem details
(RFC 9457): `detail` says what, `help` what to do, `code` the same for programs."""

POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
"""Of what is no page."""

THREADS = 12
"""Requests that work in the store at a time: it has more connections than that."""
SPARE = 4


def make_app(desk: ApiState, ways: AccessRules, body_s: float = BODY_S) -> FastAPI:
    """The API over a desk, for those who may come in.

    Whether somebody may is found out first; then their body is read, within ``body_s`` seconds, and
    only then do they take one of the places.
    """
    app = FastAPI(
        title="Homer",
        description=ABOUT,
        version=version("homer-video"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=[
            Middleware(SafeHeaders, policy=POLICY),
            Middleware(ApiAuth, ways=ways),
            Middleware(RequestLimits, body_s=body_s),
        ],
        responses=DOCUMENTED,
    )
    app.state.desk = desk
    answer_with_problems(app)
    for room in (health, videos, watching, search, questions, media):
        app.include_router(room.router)
    return app


class Hands(ThreadPoolExecutor):
    """Threads that nobody waits for when the loop ends: what they do is on record at every step."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes nothing new."""
        del wait
        super().shutdown(wait=False, cancel_futures=cancel_futures)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    desk: ApiState = app.state.desk
    app.state.pulse = DatabaseHealth(desk.store)
    current_default_thread_limiter().total_tokens = THREADS
    hands = Hands(desk.questions.places + SPARE, thread_name_prefix="question")
    asyncio.get_running_loop().set_default_executor(hands)
    yield
    desk.questions.closing.set()
