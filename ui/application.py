"""The app as one ASGI application: Streamlit's pages, and the videos and images they show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.home import Home
from ui.door.oidc import secrets_of
from ui.door.password import take_given
from ui.door.ways import Ways, ways_in

if TYPE_CHECKING:
    import streamlit as st

SCRIPT = Path(__file__).with_name("app.py")

THEME = {
    "theme.light.textColor": "#000000",
    "theme.light.primaryColor": "#1d4ed8",
    "theme.dark.textColor": "#ffffff",
    "theme.dark.primaryColor": "#1d6ff2",
}
"""Streamlit's own small print and buttons are too faint to read for some; these are not."""


def make_app(home: Home, ways: Ways) -> st.App:
    """Pages and files, behind a sign-in page where there is one.

    Names of other hosts are refused where the names of this one are known; what a page of another
    site asks for is refused always.
    """
    import streamlit as st
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from ui.door.gate import Gate, Keeper, SameOrigin
    from ui.door.signed import signed_in
    from ui.door.signin import Door
    from ui.door.signout import HERE
    from ui.files import routes

    middleware: list[Any] = [Middleware(SameOrigin)]
    if ways.names:
        middleware.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=[*ways.names]))
    every = routes()
    if ways.closed:
        HERE.closed = True
        keeper = Keeper(home, ways)
        middleware.append(Middleware(Gate, keeper=keeper))
        every += Door(keeper, entered=signed_in).routes()
    return st.App(SCRIPT, routes=every, middleware=middleware)


def run(host: str, port: int) -> None:
    """Serves until the process is stopped. Nothing is sent out.

    Raises:
        SetupError: it can be reached from elsewhere, and nothing says who may come in.
    """
    home = Home.default()
    take_given(home)
    app = make_app(home, ways_in(home, host))
    config = {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        # It would ask a server elsewhere for this machine's address.
        "logger.hideWelcomeMessage": True,
        "secrets.files": [str(secrets_of(home))],
        **THEME,
    }
    app.run(config=config)
