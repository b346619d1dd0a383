"""The app as one ASGI application: Streamlit's pages, and routes for videos and images."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from streamlit.web.bootstrap import load_config_options

from auth.connections import LimitedConnection
from auth.headers import SafeHeaders
from auth.listen import SignInMethods, sign_in_methods
from auth.middleware import RequireSignIn, SameOrigin, SessionStore
from auth.oidc import secrets_file
from auth.password import set_password_from_environment
from auth.signin_page import SignInPage
from domain.errors import SetupError
from services.lifetime import stop_when_unused
from store.home import Home
from store.usage import UsageLock
from ui.added_sources import ALLOWED, MAX_UPLOAD_MB
from ui.media import media_routes
from ui.shared_page import shared_routes
from ui.sign_in import SIGN_IN, record_sign_in, user_of
from views.translation import in_language

if TYPE_CHECKING:
    from starlette.types import ASGIApp

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
PING_S = 30
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of one WebSocket message from a browser; files are uploaded over HTTP."""


def make_app(home: Home, methods: SignInMethods) -> st.App:
    """Build the application: pages and media, behind a sign-in page where one is configured.

    Requests with an unknown ``Host`` are refused where host names are configured. Requests from
    pages of other sites are always refused.

    Args:
        home: the data directory.
        methods: how people sign in, and the host names to answer to.
    """
    middleware: list[Any] = [Middleware(SameOrigin, admits=not methods.required)]
    if methods.names:
        middleware.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*methods.names]))
    all_routes = media_routes(user_of) + shared_routes()
    if methods.required:
        session_store = SessionStore(home, methods)
        SIGN_IN.required, SIGN_IN.by_password = True, session_store.by_password
        middleware.append(Middleware(RequireSignIn, session_store=session_store))
        sign_in = SignInPage(session_store, on_sign_in=record_sign_in, in_language=in_language)
        all_routes += sign_in.routes()
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
    _configure_streamlit(home, host, port)
    stop_when_unused(home)
    # The lock keeps servers of the data directory from stopping as idle while the app runs.
    with UsageLock(home), _listening_socket(host, port) as listener:
        uvicorn.Server(_server_config(app)).run([listener])


def _configure_streamlit(home: Home, host: str, port: int) -> None:
    """Set Streamlit's options, as its command line does."""
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
