"""``python -m services.prefect_server``: Prefect's server, which asks everybody for a login.

It refuses to start without one, answers to its own names only and to no page of another site:
other users and web pages reach whatever listens on this machine.

From 2.1 on SQLAlchemy refuses a bulk insert that names a hybrid property which does not say how it
is inserted; before, it ignored it. Prefect 3.8 inserts scheduled runs that way, so without
``pass_over_state`` no run of any schedule would ever begin. Prefect 3.9.1 leaves the property out
itself.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.origins import same_site
from services.prefect_login import SERVER_VARIABLE
from store.private_files import keep_private

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
}


class Guard:
    """Refuses requests for other hosts and from pages of other sites, before Prefect sees them.

    Args:
        app: Prefect's server.
        names: host names that it answers to, without ports.
        used: is called at most every ``TOUCH_EVERY_S`` seconds while requests come in.
    """

    def __init__(
        self, app: ASGIApp, names: Sequence[str], used: Callable[[], None] = lambda: None
    ) -> None:
        self._app, self._names, self._used = app, frozenset(names), used
        self._touched = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        if why := self._refused(Headers(scope=scope)):
            return await _refuse(scope, receive, send, why)
        if scope["path"] != HEALTH and time.monotonic() - self._touched > TOUCH_EVERY_S:
            self._touched = time.monotonic()
            self._used()
        return await self._app(scope, receive, _with_headers(send))

    def _refused(self, headers: Headers) -> str:
        host = headers.get("host", "")
        if _name_in(host) not in self._names:
            return "this server does not answer to that host name"
        if not same_site(headers.get("origin"), host):
            return "asked by a page of another site"
        return ""


def serve(host: str, port: int, names: Sequence[str], stop_idle: bool) -> None:
    """Serve Prefect's API and pages until the process is told to stop.

    Args:
        host: the address to listen on.
        port: the port to listen on.
        names: further host names to answer to.
        stop_idle: stop when the data directory is gone or nobody has used it for long.
    """
    # Prefect reads this when it is imported. Its pages ask the server that they come from.
    os.environ |= {
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://127.0.0.1:{port}",
        "PREFECT_SERVER_UI_API_URL": "/api",
    }
    import uvicorn
    from prefect.server.api.server import create_app

    pass_over_state()
    used = _stopping_when_idle() if stop_idle else lambda: None
    uvicorn.run(
        Guard(create_app(final=True), [*OWN_NAMES, *names], used),
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


def _stopping_when_idle() -> Callable[[], None]:
    from services.lifetime import stop_by_itself
    from store.home import Home
    from store.usage import idle_limit_s

    home = Home.default()
    return stop_by_itself(home, idle_limit_s(home)).touch


def pass_over_state() -> None:
    """Have a bulk insert of runs leave out their state, which has a table of its own."""
    from prefect.server.database.orm_models import FlowRun, TaskRun

    for table in (FlowRun, TaskRun):
        state: Any = vars(table)["state"]
        state.bulk_dml_setter = state.bulk_dml_setter or _leave_out


def _leave_out(_table: type[Any], _row: MutableMapping[str, Any], _value: object) -> None:
    """The state stays with the row that it was inserted with; nothing else becomes of it."""


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why})
    return await PlainTextResponse(why, 403)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending


def _name_in(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    made = argparse.ArgumentParser(
        prog="python -m services.prefect_server",
        description=f"Prefect's server. It asks for the login USER:SECRET in {SERVER_VARIABLE}.",
    )
    made.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    made.add_argument("--port", type=int, default=4200)
    made.add_argument("--name", action="append", default=[], help="a host name that it answers to")
    made.add_argument(
        "--stop-idle", action="store_true", help="stop once nobody uses $HOMER_HOME any more"
    )
    return made


def main() -> None:
    """Read the command line and serve."""
    found = parser()
    chosen = found.parse_args()
    if not os.environ.get(SERVER_VARIABLE):
        found.error(f"set {SERVER_VARIABLE} to USER:SECRET: without it anybody could run commands")
    keep_private()
    serve(chosen.host, chosen.port, [name.lower() for name in chosen.name], chosen.stop_idle)


if __name__ == "__main__":
    main()
