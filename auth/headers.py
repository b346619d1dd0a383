"""Headers that keep other pages from framing a page of Homer's, or taking an answer for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "content-security-policy"
FRAMES = "frame-ancestors 'none'"
SAFE = {
    POLICY: FRAMES,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
"""What every response has, unless it says something else of its own."""
_STARTS = ("http.response.start", "websocket.http.response.start")


class SafeHeaders:
    """Gives every response the headers of ``SAFE``; an event stream that is refused gets one too.

    Args:
        app: what answers.
        policy: the content security policy of responses that have none of their own.
    """

    def __init__(self, app: ASGIApp, policy: str = FRAMES) -> None:
        self._app, self._safe = app, {**SAFE, POLICY: policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusable = "websocket.http.response" in scope.get("extensions", {})
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "websocket.close" and not begun and refusable:
                # Else the server answers by itself, without these headers.
                why = message.get("reason") or "refused"
                return await PlainTextResponse(why, 403)(scope, receive, sending)
            begun = True
            if message["type"] in _STARTS:
                raw = message.get("headers", ())
                message = {**message, "headers": with_safe(raw, self._safe)}
            return await send(message)

        return await self._app(scope, receive, sending)


def with_safe(
    raw: Iterable[tuple[bytes, bytes]], safe: Mapping[str, str] = SAFE
) -> list[tuple[bytes, bytes]]:
    """A response's headers with those that it lacks; its own policy is kept, and says of frames."""
    found = MutableHeaders(raw=[(name.lower(), value) for name, value in raw])
    own = found.get(POLICY)
    if own is not None and "frame-ancestors" not in own:
        found[POLICY] = f"{own.rstrip('; ')}; {FRAMES}"
    for name, value in safe.items():
        found.setdefault(name, value)
    return found.raw
