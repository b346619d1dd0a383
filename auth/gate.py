"""What stands before every request and event stream of an app that one has to sign in to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.connections import admit
from auth.listen import SignInMethods
from auth.oidc import user_of
from auth.origins import same_site
from auth.password import kept
from auth.sessions import Sessions
from store.home import Home

OPEN = ("/_stcore/health", "/sign-in", "/sign-out")
BY_PROVIDER = ("/auth/login", "/auth/logout", "/oauth2callback")
POLICY = 1008
"""A WebSocket is closed since it may not be."""


class SessionStore:
    """Knows who is signed in."""

    def __init__(self, home: Home, ways: SignInMethods, sessions: Sessions | None = None) -> None:
        self.home, self.ways, self.sessions = home, ways, sessions or Sessions()
        # Cookies know no ports: two apps of one machine must not take each other's.
        self.cookie = f"homer_{hashlib.sha256(str(home.root).encode()).hexdigest()[:8]}"

    def knows(self, cookies: Mapping[str, str]) -> bool:
        """Whether the bearer of these cookies is signed in."""
        token = cookies.get(self.cookie, "")
        if token and self.ways.password and self.sessions.holds(token, kept(self.home)):
            return True
        return self.ways.oidc is not None and self.ways.oidc.may(user_of(cookies))


class Gate:
    """Lets only those through who are signed in: pages, media, uploads and event streams alike."""

    def __init__(self, app: ASGIApp, keeper: SessionStore) -> None:
        self._app, self._keeper = app, keeper
        self._open = (*OPEN, *(BY_PROVIDER if keeper.ways.oidc else ()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or leads to the sign-in page."""
        if scope["type"] not in ("http", "websocket") or self._is_open(scope["path"]):
            return await self._app(scope, receive, send)
        known = HTTPConnection(scope).cookies

        def still() -> bool:
            return self._keeper.knows(known)

        if not still():
            return await _refuse(scope, receive, send)
        admit(scope)
        if scope["type"] == "websocket":
            stream = _Stream(receive, send, still)
            receive, send = stream.receive, stream.send
        return await self._app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        way = path.startswith("/sign-in/") and path.count("/") == 2
        return path in self._open or (way and self._keeper.ways.oidc is not None)


class SameOrigin:
    """Refuses whatever a page of another site asks for, event streams above all.

    Args:
        app: what answers.
        admits: nobody has to sign in, so that all others may take their time.
    """

    def __init__(self, app: ASGIApp, *, admits: bool = False) -> None:
        self._app, self._admits = app, admits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what comes from a page of the app, or from no page at all."""
        if scope["type"] in ("http", "websocket") and not _from_here(Headers(scope=scope)):
            return await _close(scope, receive, send, "asked by a page of another site")
        if self._admits:
            admit(scope)
        return await self._app(scope, receive, send)


def _from_here(headers: Headers) -> bool:
    return same_site(headers.get("origin"), headers.get("host", ""))


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Whoever reads pages is led to the sign-in page; everything else is told no."""
    headers = Headers(scope=scope)
    reads = scope["type"] == "http" and "text/html" in headers.get("accept", "")
    if reads and scope["method"] == "GET":
        query = scope["query_string"].decode("latin-1")
        wanted = scope["path"] + (f"?{query}" if query else "")
        answer = RedirectResponse(f"/sign-in?next={quote(wanted, safe='')}", 303)
        answer.headers["Cache-Control"] = "no-store"
        return await answer(scope, receive, send)
    return await _close(scope, receive, send, "sign in first", 401)


async def _close(scope: Scope, receive: Receive, send: Send, why: str, code: int = 403) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": POLICY, "reason": why})
    return await PlainTextResponse(why, code)(scope, receive, send)


class _Stream:
    """An event stream that is closed once its browser is signed out."""

    def __init__(self, receive: Receive, send: Send, still: Callable[[], bool]) -> None:
        self._receive, self._send, self._still = receive, send, still
        self._closed = False

    async def receive(self) -> Message:
        """What the browser says."""
        message = await self._receive()
        if message["type"] == "websocket.receive" and not await self._goes_on():
            return {"type": "websocket.disconnect", "code": POLICY}
        return message

    async def send(self, message: Message) -> None:
        """What the browser is told."""
        if message["type"] != "websocket.send" or await self._goes_on():
            await self._send(message)

    async def _goes_on(self) -> bool:
        if not self._closed and not self._still():
            self._closed = True
            await self._send({"type": "websocket.close", "code": POLICY})
        return not self._closed
