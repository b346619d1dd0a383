"""The app as one ASGI application: Streamlit's pages, and routes for videos and images."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
import uvicorn
from anyio import to_thread
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.bootstrap import load_config_options

from auth.connections import LimitedConnection, SafeHeaders
from auth.middleware import RequireSignIn, SameOrigin, SessionStore
from auth.signin_page import SignInPage
from auth.signing_in import (
    SignInMethods,
    secrets_file,
    set_password_from_environment,
    sign_in_methods,
)
from domain.errors import HomerError, SetupError
from services.daemon import stop_when_unused
from store.home import Home
from store.postmaster import UsageLock
from store.queries.rights import store_for
from ui.ingestion import ALLOWED, MAX_UPLOAD_MB, UPLOADS_MB, VIEWER_UPLOADS_MB
from ui.language import in_language
from ui.media import UserOf, media_routes, shared_store
from ui.sharing import shared_routes
from ui.sign_in import SIGN_IN, record_sign_in, user_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SCRIPT = Path(__file__).with_name("app.py")

THEME = {
    "theme.light.textColor": "#000000",
    "theme.light.primaryColor": "#1d4ed8",
    "theme.dark.textColor": "#ffffff",
    "theme.dark.primaryColor": "#1d6ff2",
}
"""Streamlit's own colours of captions and buttons have too little contrast for some readers."""

PROXIES_VARIABLE = "FORWARDED_ALLOW_IPS"
"""Addresses of the proxies that uvicorn believes what they say of their clients, with commas."""
UPLOADS_PATH = "/_stcore/upload_file/"
"""Where Streamlit's pages send files: followed by the session and the file."""
PING_S = 30
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of one WebSocket message from a browser; files are uploaded over HTTP."""


class UploadLimits:
    """Limits what each user has in memory of uploaded files.

    Streamlit keeps a file until its form is sent again without it, or its session has ended; it
    limits neither the number of files nor that of sessions.

    Args:
        files: returns Streamlit's uploads.
        user_of: returns the name in grants of whom the cookies belong to.
        may_change: returns whether that user may change the library.
    """

    def __init__(
        self,
        app: ASGIApp,
        files: Callable[[], MemoryUploadedFileManager],
        user_of: UserOf,
        may_change: Callable[[str | None], bool],
    ) -> None:
        self._app, self._files, self._user_of, self._may_change = app, files, user_of, may_change
        self._users: dict[str, str | None] = {}
        self._arriving: Counter[str | None] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse an upload of unknown size, and one that is too large with the user's others."""
        if (
            scope["type"] != "http"
            or scope["method"] != "PUT"
            or not scope["path"].startswith(UPLOADS_PATH)
        ):
            return await self._app(scope, receive, send)
        request = Request(scope)
        user, length = self._user_of(request.cookies), request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            return await PlainTextResponse("say how long it is", 411)(scope, receive, send)
        size, session = int(length[:19]), scope["path"].removeprefix(UPLOADS_PATH).partition("/")[0]
        may_change = await to_thread.run_sync(self._may_change, user)
        held = {
            one: sum(len(file.data) for file in list(files.values()))
            for one, files in list(self._files().file_storage.items())
        }
        # Sessions without files are forgotten.
        self._users = {one: owner for one, owner in self._users.items() if held.get(one)}
        of_user = sum(held[one] for one, owner in self._users.items() if owner == user)
        limit = (UPLOADS_MB if may_change else VIEWER_UPLOADS_MB) * 1024 * 1024
        if of_user + self._arriving[user] + size > limit:
            return await PlainTextResponse("too much at a time", 413)(scope, receive, send)
        # Counted while it arrives: several at a time would each find room.
        self._arriving[user] += size
        try:
            await self._app(scope, receive, send)
        finally:
            self._users[session] = user
            self._arriving[user] -= size
        return None


def _may_change(user: str | None) -> bool:
    try:
        return store_for(shared_store(), user).may_change
    except HomerError:
        return False


def _uploaded_files() -> MemoryUploadedFileManager:
    files = Runtime.instance().uploaded_file_mgr
    assert isinstance(files, MemoryUploadedFileManager)  # noqa: S101 - Streamlit's only one
    return files


def make_app(home: Home, methods: SignInMethods) -> st.App:
    """Build the application: pages and media, behind a sign-in page where one is configured.

    Args:
        methods: how people sign in, and the host names to answer to.
    """
    # Requests from pages of other sites are always refused.
    middleware: list[Any] = [Middleware(SameOrigin, admits=not methods.required)]
    if methods.names:
        # Before anything else: a page of another name that leads here would count as our own.
        middleware.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*methods.names]))
    all_routes = media_routes(user_of) + shared_routes()
    if methods.required:
        session_store = SessionStore(home, methods)
        SIGN_IN.required, SIGN_IN.by_password = True, session_store.by_password
        middleware.append(Middleware(RequireSignIn, session_store=session_store))
        sign_in = SignInPage(session_store, on_sign_in=record_sign_in, in_language=in_language)
        all_routes += sign_in.routes()
    middleware.append(Middleware(UploadLimits, _uploaded_files, user_of, _may_change))
    return st.App(SCRIPT, routes=all_routes, middleware=middleware)


def run(host: str, port: int, folders: Sequence[Path] = ()) -> None:
    """Serve until the process is stopped; videos may be added from ``folders``.

    Raises:
        SetupError: other machines could reach the app and no sign-in is configured, or it cannot
            listen on this address.
    """
    home = Home.default()
    ALLOWED.folders = tuple(folders)
    set_password_from_environment(home)
    app = make_app(home, sign_in_methods(home, host))
    # Set Streamlit's options, as its command line does.
    options = {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.maxUploadSize": MAX_UPLOAD_MB,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        # Neither a remote control of the pages nor static files are needed.
        "server.enableAgentApi": False,
        "server.enableStaticServing": False,
        # The welcome message would ask an external server for this machine's address.
        "logger.hideWelcomeMessage": True,
        "secrets.files": [str(secrets_file(home))],
        **THEME,
    }
    load_config_options(options)
    stop_when_unused(home)
    # The lock keeps servers of the data directory from stopping as idle while the app runs.
    with UsageLock(home), _listening_socket(host, port) as listener:
        uvicorn.Server(_server_config(app)).run([listener])


def _listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; on ``::`` it accepts IPv4 and IPv6.

    Raises:
        SetupError: the address does not belong to this machine, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual_stack = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=dual_stack)
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"the app cannot listen on {host}, port {port} ({error}): choose another with --port "
            "or --address; --port 0 takes any free one"
        ) from error


def _server_config(app: ASGIApp) -> uvicorn.Config:
    """Return Streamlit's own settings of uvicorn, with limited connections and safe headers."""
    return uvicorn.Config(
        SafeHeaders(app),
        http=LimitedConnection,
        ws="websockets-sansio",
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        use_colors=False,
        access_log=False,
        server_header=False,
        # Otherwise anybody on this machine could claim to be any client, and guess as many.
        proxy_headers=bool(os.environ.get(PROXIES_VARIABLE)),
    )
