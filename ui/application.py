"""The app as one ASGI application: Streamlit's pages, and the videos and images they show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import streamlit as st

SCRIPT = Path(__file__).with_name("app.py")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


THEME = {
    "theme.light.textColor": "#000000",
    "theme.light.primaryColor": "#1d4ed8",
    "theme.dark.textColor": "#ffffff",
    "theme.dark.primaryColor": "#1d6ff2",
}
"""Streamlit's own small print and buttons are too faint to read for some; these are not."""


def make_app(host: str = "127.0.0.1") -> st.App:
    """Pages and files; on this machine only, pages of other sites are refused by their host."""
    import streamlit as st
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from ui.files import routes

    middleware: list[Any] = []
    if host in LOOPBACK:
        middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))]
    return st.App(SCRIPT, routes=routes(), middleware=middleware)


def run(host: str, port: int) -> None:
    """Serves until the process is stopped. Nothing is sent out."""
    config = {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        **THEME,
    }
    make_app(host).run(config=config)
