"""The API as one ASGI application, and its server process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from starlette.middleware import Middleware

from api.access import BODY_S, AccessRules, ApiAuth, QuestionSlots, RequestLimits, access_rules
from api.door import DEFAULT_QUESTIONS, ApiState, InSeconds, add_acts
from api.problems import ERROR_RESPONSES, add_error_handlers
from api.routes import health, questions, videos
from api.routes.health import DatabaseHealth
from auth.connections import LimitedConnection, SafeHeaders
from domain.errors import InputError, SetupError
from models.profile import load_profile
from store.database import open_store
from store.home import Home

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
    # The order of the documentation page: asking behind watching, images last.
    for router in (health.router, videos.router, questions.router, questions.chats, videos.images):
        app.include_router(router)
    add_acts(app)
    return app


def guards(rules: AccessRules, body_s: float) -> list[Middleware]:
    """Return the middleware of a server."""
    # Requests are authenticated first; then their body is read, within ``body_s`` seconds; only
    # then do they count against the limit of concurrent requests.
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


HOST, PORT = "127.0.0.1", 8600
GRACE_S = 10.0
"""Seconds for running questions to end with the best answer so far when the server stops."""


@dataclass(frozen=True)
class ServerOptions:
    """What a server is started with; port 0 takes any free one.

    Videos may be added from ``folders``; so many ``questions`` run at a time; a request's body must
    arrive within ``body_s`` seconds.
    """

    host: str = HOST
    port: int = PORT
    folders: tuple[Path, ...] = ()
    questions: int = DEFAULT_QUESTIONS
    profile: str | None = None
    body_s: float = BODY_S


def serve(
    home: Home,
    options: ServerOptions,
    on_address: Callable[[str], None],
    application: Callable[[ApiState, AccessRules, float], FastAPI] = make_app,
) -> None:
    """Serve what ``application`` builds until the process is stopped; ``on_address`` has the URL.

    Raises:
        SetupError: other machines could reach it and there is no key, the port is taken, or the
            database cannot be opened.
        InputError: a folder or the profile does not exist.
        KeyboardInterrupt: it was stopped; running questions are recorded so far.
        UnfinishedQuestions: it was stopped, and the process would wait for its threads.
    """
    rules = access_rules(options.host)
    folders = tuple(path.expanduser().absolute() for path in options.folders)
    for path in folders:
        if not path.is_dir():
            raise InputError(f"--videos {path}: there is no such folder")
    profile = load_profile(options.profile, home.config).name
    with (
        listening_socket(options.host, options.port) as listener,
        open_state(home, profile, options.questions, folders) as state,
    ):
        on_address(socket_url(listener))
        app = application(state, rules, options.body_s)
        _Server(server_config(app), state.questions).run([listener])


class UnfinishedQuestions(KeyboardInterrupt):
    """A question still waits for its model: only the end of the process ends it."""


@contextmanager
def open_state(
    home: Home, profile: str, questions: int, folders: tuple[Path, ...] = ()
) -> Iterator[ApiState]:
    """Open the store for a server, and close it when no question runs any more.

    Raises:
        SetupError: the database cannot be opened.
        UnfinishedQuestions: a question still runs at the end.
    """
    with open_store(home) as store:
        state = ApiState(store, profile, folders=folders, questions=QuestionSlots(questions))
        with closed_at_end(state):
            yield state


@contextmanager
def closed_at_end(state: ApiState) -> Iterator[None]:
    """Close what a server opened when no question runs any more.

    Raises:
        UnfinishedQuestions: a question still runs at the end.
    """
    try:
        yield
    finally:
        if state.questions.in_use:
            raise UnfinishedQuestions
        state.close()


def server_config(app: FastAPI) -> uvicorn.Config:
    """Configure uvicorn without access logs and without a server header."""
    return uvicorn.Config(
        app,
        http=LimitedConnection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=int(GRACE_S),
    )


class _Server(uvicorn.Server):
    """Ends questions before connections, so that their clients get an answer."""

    def __init__(self, config: uvicorn.Config, slots: QuestionSlots) -> None:
        super().__init__(config)
        self._slots = slots

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop running questions, and wait until they are recorded."""
        # Before connections are closed, so that clients get an answer.
        self._slots.closing.set()
        await super().shutdown(sockets)
        await self._slots.wait_until_idle(GRACE_S)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        SetupError: the address does not belong to this machine, or the port is taken.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = addresses[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"the API cannot listen on {host}, port {port} ({error}): choose another with --port "
            "or --address; --port 0 takes any free one"
        ) from error


def socket_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
