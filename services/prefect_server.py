"""``python -m services.prefect_server``: Prefect's server, which requires a login.

It refuses to start without one, and refuses requests for other host names and from pages of other
sites: other users and web pages can reach every port of this machine.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.connections import same_origin
from services.daemon import stop_when_unused
from services.supervisor import SERVER_VARIABLE, omit_state_in_bulk_inserts
from store.files import set_private_umask
from store.home import Home
from store.postmaster import idle_limit_s

OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
HEALTH = "/api/health"
POLICY_VIOLATION = 1008
TOUCH_EVERY_S = 10.0
STOP_WITHIN_S = 5
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class OriginGuard:
    """Middleware that refuses requests for other hosts and from pages of other sites.

    Args:
        names: host names that it answers to, without ports.
        used: called at most every ``TOUCH_EVERY_S`` seconds while requests come in.
    """

    def __init__(
        self, app: ASGIApp, names: Sequence[str], used: Callable[[], None] = lambda: None
    ) -> None:
        self._app, self._names, self._used = app, frozenset(names), used
        self._touched = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with the reason."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers, why = Headers(scope=scope), ""
        host = headers.get("host", "")
        name, colon, port = host.rpartition(":")
        if (name if colon and port.isdigit() else host).lower() not in self._names:
            why = "this server does not answer to that host name"
        elif not same_origin(headers):
            why = "asked by a page of another site"
        if why:
            if scope["type"] == "websocket":
                return await send(
                    {"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why}
                )
            return await PlainTextResponse(why, 403)(scope, receive, send)
        if scope["path"] != HEALTH and time.monotonic() - self._touched > TOUCH_EVERY_S:
            self._touched = time.monotonic()
            self._used()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        return await self._app(scope, receive, sending)


def serve(host: str, port: int, names: Sequence[str], stop_idle: bool) -> None:
    """Serve Prefect's API and pages until the process is stopped.

    Args:
        host: the address to listen on.
        names: further host names to answer to.
        stop_idle: stop when the data directory is gone or nobody has used it for long.
    """
    # Prefect reads this when it is imported. Its pages send requests to their own server.
    os.environ |= {
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://127.0.0.1:{port}",
        "PREFECT_SERVER_UI_API_URL": "/api",
    }
    from prefect.server.api.server import create_app

    omit_state_in_bulk_inserts()
    home = Home.default()
    used = stop_when_unused(home, idle_limit_s(home)).touch if stop_idle else lambda: None
    uvicorn.run(
        OriginGuard(create_app(final=True), [*OWN_NAMES, *names], used),
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m services.prefect_server",
        description=f"Prefect's server. It asks for the login USER:SECRET in {SERVER_VARIABLE}.",
    )
    arguments.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    arguments.add_argument("--port", type=int, default=4200)
    arguments.add_argument(
        "--name", action="append", default=[], help="a host name that it answers to"
    )
    arguments.add_argument(
        "--stop-idle", action="store_true", help="stop once nobody uses $HOMER_HOME any more"
    )
    return arguments


def main() -> None:
    """Read the command line and serve."""
    arguments = parser()
    options = arguments.parse_args()
    if not os.environ.get(SERVER_VARIABLE):
        arguments.error(
            f"set {SERVER_VARIABLE} to USER:SECRET: without it anybody could run commands"
        )
    set_private_umask()
    serve(options.host, options.port, [name.lower() for name in options.name], options.stop_idle)


if __name__ == "__main__":
    main()
