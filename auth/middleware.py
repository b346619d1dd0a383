"""Middleware: require a sign-in, and refuse requests of other sites."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.connections import admit, same_origin
from auth.signing_in import SESSION_S, Sessions, SignInMethods, stored_hash, user_from_cookies
from store.home import Home

PUBLIC_PATHS = ("/_stcore/health", "/sign-in", "/sign-out")
SHARED = "/shared/"
"""Links that need no sign-in: they are signed, and checked where they are opened."""
CALLBACK = "/oauth2callback"
PROVIDER_PATHS = ("/auth/login", "/auth/logout", CALLBACK)
POLICY_VIOLATION = 1008
"""WebSocket close code: policy violation."""


class SessionStore:
    """The sessions of an app, and how they are recognised by cookies."""

    def __init__(
        self, home: Home, methods: SignInMethods, sessions: Sessions | None = None
    ) -> None:
        self.home, self.methods, self.sessions = home, methods, sessions or Sessions()
        # Cookies ignore ports: two apps on one machine need different names.
        self.cookie = f"homer_{hashlib.sha256(str(home.root).encode()).hexdigest()[:8]}"

    def is_signed_in(self, cookies: Mapping[str, str]) -> bool:
        """Return whether these cookies belong to a valid session."""
        if self.by_password(cookies):
            return True
        if self.methods.oidc is None:
            return False
        # Streamlit's signed cookie says who it is. By itself it would be good for a month, also
        # after the sign-out, so it counts only with a session of the same user that was begun here.
        user, token = user_from_cookies(cookies), cookies.get(self.cookie, "")
        return self.methods.oidc.admits(user) and self.sessions.is_valid(token, _holder(user))

    def by_password(self, cookies: Mapping[str, str]) -> bool:
        """Return whether these cookies belong to a session that the password began."""
        token = cookies.get(self.cookie, "")
        return bool(
            token
            and self.methods.password
            and self.sessions.is_valid(token, stored_hash(self.home))
        )

    def begin(self, response: Response, holder: str, *, secure: bool) -> None:
        """Begin a session, and give its cookie to the browser.

        Args:
            holder: the session is valid as long as this is; see ``Sessions``.
        """
        response.set_cookie(
            self.cookie,
            self.sessions.begin(holder),
            max_age=int(SESSION_S),
            httponly=True,
            samesite="lax",
            secure=secure,
        )

    def after_provider(self, send: Send, scope: Scope) -> Send:
        """Begin a session if a provider's user is sent a cookie that says who they are."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and self.methods.oidc is not None:
                sent = [v.decode("latin-1") for k, v in message["headers"] if k == b"set-cookie"]
                cookies = dict(one.partition(";")[0].split("=", 1) for one in sent)
                user = user_from_cookies({k: v.strip('"') for k, v in cookies.items()})
                if self.methods.oidc.admits(user):
                    own = Response()
                    self.begin(own, _holder(user), secure=scope.get("scheme") == "https")
                    cookie = (b"set-cookie", own.headers["set-cookie"].encode("latin-1"))
                    message = {**message, "headers": [*message["headers"], cookie]}
            await send(message)

        return sending


def _holder(user: Mapping[str, Any]) -> str:
    """Return what the session of a provider's user is valid for; no hash of a password."""
    return f"@{user.get('provider')}:{user.get('sub')}"


class RequireSignIn:
    """Require a sign-in for pages, media, uploads and WebSockets."""

    def __init__(self, app: ASGIApp, session_store: SessionStore) -> None:
        self._app, self._session_store = app, session_store
        self._public_paths = (
            *PUBLIC_PATHS,
            *(PROVIDER_PATHS if session_store.methods.oidc else ()),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or redirect to the sign-in page."""
        path = scope.get("path", "")
        is_provider = path.startswith("/sign-in/") and path.count("/") == 2
        is_public = (
            path in self._public_paths
            or (path.startswith(SHARED) and path.count("/") == 2)
            or (is_provider and self._session_store.methods.oidc is not None)
        )
        if scope["type"] not in ("http", "websocket") or is_public:
            if scope.get("path") == CALLBACK:
                send = self._session_store.after_provider(send, scope)
            return await self._app(scope, receive, send)
        cookies = HTTPConnection(scope).cookies

        def is_signed_in() -> bool:
            return self._session_store.is_signed_in(cookies)

        if not is_signed_in():
            headers = Headers(scope=scope)
            wants_html = scope["type"] == "http" and "text/html" in headers.get("accept", "")
            if wants_html and scope["method"] == "GET":
                query = scope["query_string"].decode("latin-1")
                wanted = scope["path"] + (f"?{query}" if query else "")
                response = RedirectResponse(f"/sign-in?next={quote(wanted, safe='')}", 303)
                response.headers["Cache-Control"] = "no-store"
                return await response(scope, receive, send)
            return await _close(scope, receive, send, "sign in first", 401)
        admit(scope)
        if scope["type"] == "websocket":
            stream = _CheckedWebSocket(receive, send, is_signed_in)
            receive, send = stream.receive, stream.send
        return await self._app(scope, receive, send)


class SameOrigin:
    """Refuse requests that pages of other sites send, WebSockets in particular.

    Args:
        admits: admit all other requests, since nobody has to sign in.
    """

    def __init__(self, app: ASGIApp, *, admits: bool = False) -> None:
        self._app, self._admits = app, admits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on requests of the app's own pages, and of clients that are not pages."""
        if scope["type"] in ("http", "websocket") and not same_origin(Headers(scope=scope)):
            return await _close(scope, receive, send, "sent by a page of another site")
        if self._admits:
            admit(scope)
        return await self._app(scope, receive, send)


async def _close(scope: Scope, receive: Receive, send: Send, reason: str, code: int = 403) -> None:
    if scope["type"] == "websocket":
        return await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
    return await PlainTextResponse(reason, code)(scope, receive, send)


class _CheckedWebSocket:
    """A WebSocket that is closed once its session ends."""

    def __init__(self, receive: Receive, send: Send, is_signed_in: Callable[[], bool]) -> None:
        self._receive, self._send, self._is_signed_in = receive, send, is_signed_in
        self._closed = False

    async def receive(self) -> Message:
        """Receive a message of the browser, or a disconnect once the session has ended."""
        message = await self._receive()
        if message["type"] == "websocket.receive" and not await self._check():
            return {"type": "websocket.disconnect", "code": POLICY_VIOLATION}
        return message

    async def send(self, message: Message) -> None:
        """Send a message to the browser while its session is valid."""
        if message["type"] != "websocket.send" or await self._check():
            await self._send(message)

    async def _check(self) -> bool:
        if not self._closed and not self._is_signed_in():
            self._closed = True
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION})
        return not self._closed
