"""Security headers of every response, and the check of a request's origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = "content-security-policy"
NO_FRAMES = "frame-ancestors 'none'"
SAFE_HEADERS = {
    CSP: NO_FRAMES,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every response that does not set them itself."""
SANDBOX = "default-src 'none'; sandbox"
"""The policy of what is no page: a file of somebody's, in which nothing runs, whatever it holds."""
STREAMLIT_FILES = "/media/"
_START_MESSAGES = ("http.response.start", "websocket.http.response.start")


class SafeHeaders:
    """Add ``SAFE_HEADERS`` to every response, also to that of a refused WebSocket.

    Args:
        policy: the content security policy of responses that have none of their own.
    """

    def __init__(self, app: ASGIApp, policy: str = NO_FRAMES) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusable = "websocket.http.response" in scope.get("extensions", {})
        own = SANDBOX if scope["path"].startswith(STREAMLIT_FILES) else self._policy
        safe, started = {**SAFE_HEADERS, CSP: own}, False

        async def send_safe(message: Message) -> None:
            nonlocal started
            if message["type"] == "websocket.close" and not started and refusable:
                # Otherwise the server would respond without these headers.
                why = message.get("reason") or "refused"
                return await PlainTextResponse(why, 403)(scope, receive, send_safe)
            started = True
            if message["type"] in _START_MESSAGES:
                raw = list(message.get("headers", ()))
                if scope.get("scheme") in ("https", "wss"):
                    # The browser sends them by TLS only; Streamlit's own lack that.
                    for place, (name, cookie) in enumerate(raw):
                        if name.lower() == b"set-cookie" and b"; secure" not in cookie.lower():
                            raw[place] = (name, cookie + b"; Secure")
                message = {**message, "headers": with_safe_headers(raw, safe)}
            return await send(message)

        return await self._app(scope, receive, send_safe)


def with_safe_headers(
    raw: Iterable[tuple[bytes, bytes]], safe: Mapping[str, str] = SAFE_HEADERS
) -> list[tuple[bytes, bytes]]:
    """Add missing headers; a policy is extended to forbid frames."""
    headers = MutableHeaders(raw=[(name.lower(), value) for name, value in raw])
    for name, value in safe.items():
        headers.setdefault(name, value)
    if "frame-ancestors" not in headers[CSP]:
        headers[CSP] = f"{headers[CSP].rstrip('; ')}; {NO_FRAMES}"
    return headers.raw


def same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a page of the same host, or from no page.

    Browsers send no ``Origin`` with what an ``<img>`` asks for, but ``Sec-Fetch-Site``. A link may
    be followed from anywhere, such as to a shared answer, or from a provider after the sign-in.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    if site not in ("same-origin", "none") and opened != ("navigate", "document"):
        return False
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:  # http://[
        return False
