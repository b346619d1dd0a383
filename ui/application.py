"""The app as one ASGI application: Streamlit's pages, and the videos and images they show."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
import uvicorn
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from streamlit.web.bootstrap import load_config_options

from auth.connections import LimitedConnection
from auth.gate import Gate, SameOrigin, SessionStore
from auth.headers import SafeHeaders
from auth.listen import SignInMethods, ways_in
from auth.oidc import secrets_of
from auth.password import take_given
from auth.signin_page import SignInPage
from domain.errors import SetupError
from services.lifetime import stop_when_unused
from store.home import Home
from store.usage import UsageLock
from ui.files import routes
from ui.signed_in import signed_in
from ui.signout import HERE

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SCRIPT = Path(__file__).with_name("app.py")

THEME = {
    "theme.light.textColor": "#000000",
    "theme.light.primaryColor": "#1d4ed8",
    "theme.dark.textColor": "#ffffff",
    "theme.dark.primaryColor": "#1d6ff2",
}
"""Streamlit's own small print and buttons are too faint to read for some; these are not."""

PING_S = 30
MOST_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of one message of a browser's; files come another way."""


def make_app(home: Home, ways: SignInMethods) -> st.App:
    """Pages and files, behind a sign-in page where there is one.

    Names of other hosts are refused where the names of this one are known; what a page of another
    site asks for is refused always.
    """
    middleware: list[Any] = [Middleware(SameOrigin, admits=not ways.closed)]
    if ways.names:
        middleware.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*ways.names]))
    every = routes()
    if ways.closed:
        HERE.closed = True
        keeper = SessionStore(home, ways)
        middleware.append(Middleware(Gate, keeper=keeper))
        every += SignInPage(keeper, entered=signed_in).routes()
    return st.App(SCRIPT, routes=every, middleware=middleware)


def run(host: str, port: int) -> None:
    """Serves until the process is stopped. Nothing is sent out.

    Raises:
        SetupError: it can be reached from elsewhere, and nothing says who may come in, or it cannot
            listen there.
    """
    home = Home.default()
    take_given(home)
    app = make_app(home, ways_in(home, host))
    _configure(home, host, port)
    stop_when_unused(home)
    # Servers of the data directory do not stop as idle while the app runs.
    with UsageLock(home), _listening(host, port) as listener:
        uvicorn.Server(_served(app)).run([listener])


def _configure(home: Home, host: str, port: int) -> None:
    """Sets Streamlit's options, as its command line does."""
    options = {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        # Whoever may see the pages of an app need not drive it by program, or read files beside it.
        "server.enableAgentApi": False,
        "server.enableStaticServing": False,
        # It would ask a server elsewhere for this machine's address.
        "logger.hideWelcomeMessage": True,
        "secrets.files": [str(secrets_of(home))],
        **THEME,
    }
    load_config_options(options)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; on ``::`` to both kinds of addresses.

    Raises:
        SetupError: the address is not this machine's, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        raise SetupError(
            f"the app cannot listen on {host}, port {port} ({error}): choose another with --port "
            "or --address; --port 0 takes any free one"
        ) from error


def _served(app: ASGIApp) -> uvicorn.Config:
    """As Streamlit's own runner has it, with limits for connections, and headers on everything."""
    return uvicorn.Config(
        SafeHeaders(app),
        http=LimitedConnection,
        ws="websockets-sansio",
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_max_size=MOST_MESSAGE_BYTES,
        ws_per_message_deflate=False,
        use_colors=False,
        access_log=False,
        server_header=False,
    )
