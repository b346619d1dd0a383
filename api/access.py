"""Who may make requests, and how many: keys, and limits on concurrency, body size and time.

Without keys anybody on this machine may. Every error that is left becomes a problem.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import RequestRefused, TooManyRequests, problem_response
from auth.connections import admit, extend_wait, same_origin
from auth.signing_in import LOOPBACK, is_loopback
from domain.errors import SetupError
from domain.rights import KEY_PREFIX, LABEL, acting_user
from models.keys_and_packages import read_key

KEY_VARIABLE = "HOMER_API_KEY"
HOSTS_VARIABLE = "HOMER_API_NAMES"
"""Host names under which a proxy serves the API, separated by commas."""
MIN_KEY_CHARS = 20
"""Characters of a key."""
USER_KEY = "homer.user"
"""The key of an ASGI scope with the name of its user in grants; None: without keys, the operator.
"""
PUBLIC_PATHS = ("/health", "/docs", "/openapi.json")
"""Paths that reveal nothing of the library, and need no key."""

_PROXY_HEADERS = re.compile(r"forwarded|via|x-forwarded-.*|x-real-ip")
"""Headers that proxies add: such a request comes from this machine, but not its client."""


@dataclass(frozen=True)
class ApiKey:
    """The digest of an API key, and its label in the audit log."""

    label: str
    digest: bytes = field(repr=False)


@dataclass(frozen=True)
class AccessRules:
    """The accepted keys (none: no key needed), and the accepted host names (none: all)."""

    keys: tuple[ApiKey, ...] = ()
    names: tuple[str, ...] = ()


def access_rules(host: str) -> AccessRules:
    """Read the access rules of an API that listens on ``host``.

    Raises:
        SetupError: other machines could reach it and no key is set, or a key is invalid.
    """
    keys = parse_keys(read_key(KEY_VARIABLE) or "")
    # Child processes do not get the keys.
    os.environ.pop(KEY_VARIABLE, None)
    configured = os.environ.get(HOSTS_VARIABLE, "").lower().split(",")
    proxy_names = tuple(name.strip() for name in configured if name.strip())
    if not keys and (proxy_names or not is_loopback(host)):
        raise SetupError(
            f"the API would be open to everybody who can reach {', '.join(proxy_names) or host}. "
            f"Set a key first: set {KEY_VARIABLE} to {MIN_KEY_CHARS} characters or more, such as "
            "`openssl rand -hex 24` prints (docs/api.md, Keys)"
        )
    if not is_loopback(host):
        return AccessRules(keys, proxy_names)
    name = f"[{host}]" if ":" in host else host.lower()
    own = LOOPBACK if name in LOOPBACK else (*LOOPBACK, name)
    return AccessRules(keys, (*own, *proxy_names))


def parse_keys(given: str) -> tuple[ApiKey, ...]:
    """Parse ``KEY`` or ``LABEL:KEY,LABEL:KEY``; a key without a label is called ``key``.

    Raises:
        SetupError: a key is too short or not printable, or its label is invalid. The message names
            only its position, since the label may be part of a secret.
    """
    keys = list[ApiKey]()
    for position, entry in enumerate(given.split(","), 1):
        if not entry.strip():
            continue
        label, colon, secret = entry.strip().rpartition(":")
        if len(secret) < MIN_KEY_CHARS or not re.fullmatch(r"[!-~]+", secret):
            raise SetupError(
                f"{KEY_VARIABLE}: key {position} is not {MIN_KEY_CHARS} or more letters, digits "
                "and signs without spaces; a comma ends a key, and a colon its label"
            )
        if colon and not LABEL.fullmatch(label):
            raise SetupError(
                f"{KEY_VARIABLE}: the label of key {position} is not 1 to 32 letters, digits, "
                "'_', '.' and '-'; a key has no colon in it"
            )
        keys.append(ApiKey(label or "key", _digest(secret)))
    return tuple(keys)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def find_label(keys: Sequence[ApiKey], given: str) -> str | None:
    """Return the label of a key, or None, in constant time."""
    digest, found = _digest(given), None
    # All are compared: how long it takes does not tell which one is near.
    for key in keys:
        found = key.label if hmac.compare_digest(key.digest, digest) else found
    return found


class ApiAuth:
    """Middleware that authenticates requests, and sets the user for the audit log."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with a problem."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            headers, public = Headers(scope=scope), scope["path"] in PUBLIC_PATHS
            # The host name of a ``Host`` header, without the port.
            header = headers.get("host", "")
            name, colon, port = header.rpartition(":")
            host = (name if colon and port.isdigit() else header).lower()
            if self._rules.names and host not in self._rules.names and not public:
                detail, names = "this server does not answer to that name", self._rules.names
                hint = f"use {', '.join(names)}, or "
                hint += f"have the operator add the host to {HOSTS_VARIABLE}"
                raise RequestRefused(HTTPStatus.MISDIRECTED_REQUEST, "host", detail, hint)
            # A page of any site can have its reader's browser send requests to this machine.
            if not same_origin(headers):
                hint = "send it from a program, or from a page of this server"
                detail = "sent by a page of another site"
                raise RequestRefused(HTTPStatus.FORBIDDEN, "origin", detail, hint)
            if self._rules.keys and not public:
                user = self._bearer(headers)
            else:
                # A proxy would pass anybody on to a server without keys.
                if not public and any(_PROXY_HEADERS.fullmatch(name) for name in headers):
                    detail = "forwarded by a proxy, and this server has no key"
                    hint = f"have the operator set {KEY_VARIABLE} (docs/api.md, Keys)"
                    raise RequestRefused(HTTPStatus.FORBIDDEN, "proxy", detail, hint)
                client = scope.get("client")
                user = str(client[0]) if client else "unknown"
        except RequestRefused as refused:
            return await problem_response(refused)(scope, receive, send)
        scope[USER_KEY] = f"{KEY_PREFIX}{user}" if self._rules.keys else None
        token = acting_user.set(f"api ({user})")
        try:
            return await self._app(scope, receive, send)
        finally:
            acting_user.reset(token)

    def _bearer(self, headers: Headers) -> str:
        kind, _, given = headers.get("authorization", "").partition(" ")
        label = find_label(self._rules.keys, given.strip()) if kind.lower() == "bearer" else None
        if label is not None:
            return label
        hint = "send the header 'Authorization: Bearer KEY'; the operator of the server has keys"
        detail = "this key is not valid on this server" if given else "a key is required"
        refused = RequestRefused(HTTPStatus.UNAUTHORIZED, "key", detail, hint)
        refused.headers = {"WWW-Authenticate": 'Bearer realm="homer"'}
        raise refused


# Limits of requests.


MAX_BODY_BYTES = 64 * 1024
"""Size limit of a request's body."""
MAX_REQUESTS = 64
BODY_S = 30.0
"""Seconds within which a whole body must arrive."""
MARGIN_S = 5.0
"""Seconds after that to send the error."""

_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
"""Methods whose body is ignored."""


class RequestLimits:
    """Middleware that refuses excessive requests, and logs and reports unexpected errors.

    A body is read completely before its request counts against the limit, so that slow clients do
    not block others.

    ``body_s``: seconds that a whole body may take, however many its pieces.
    """

    def __init__(
        self, app: ASGIApp, max_requests: int = MAX_REQUESTS, body_s: float | None = None
    ) -> None:
        self._app, self._max_requests, self._active = app, max_requests, 0
        self._body_s = BODY_S if body_s is None else body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with a problem."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            body = await self._body(scope, receive)
        except RequestRefused as refused:
            return await problem_response(refused)(scope, receive, send)
        if body is None:
            return None  # The client has disconnected.
        if scope["path"] not in PUBLIC_PATHS:
            admit(scope)
        # Health checks must work on a busy server too; they have a limit of their own.
        counts = scope["path"] != "/health"
        if counts and self._active >= self._max_requests:
            hint = "wait as many seconds as Retry-After says, and try again"
            detail = "the server has reached its limit of requests"
            return await problem_response(
                RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "crowded", detail, hint)
            )(scope, receive, send)
        self._active += counts
        try:
            messages = [{"type": "http.request", "body": body, "more_body": False}]

            async def receiving() -> Message:
                return messages.pop() if messages else await receive()

            started = False

            async def sending(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await self._app(scope, receiving, sending)
            except Exception as error:  # noqa: BLE001 - an edge: no traceback leaves the server
                failed = problem_response(error)
                # What has begun to be sent becomes no problem any more; it is logged.
                if not started:
                    await failed(scope, receiving, send)
        finally:
            self._active -= counts
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the whole body; return None if the client disconnects."""
        length = Headers(scope=scope).get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:19]) > MAX_BODY_BYTES:
            raise _too_large()
        if scope["method"] in _WITHOUT_BODY:
            return b""
        extend_wait(scope, self._body_s + MARGIN_S)
        try:
            async with asyncio.timeout(self._body_s):
                body, more = bytearray(), True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > MAX_BODY_BYTES:
                        raise _too_large()
                return bytes(body)
        except TimeoutError as error:
            hint = "send the body at once; it did not arrive in time"
            detail = "the body did not arrive"
            refused = RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "request-timeout", detail, hint)
            # What comes of the body later would be read as another request.
            refused.headers = {"Connection": "close"}
            raise refused from error


def _too_large() -> RequestRefused:
    detail = f"the body is larger than {MAX_BODY_BYTES // 1024} KB"
    hint = "send less: videos are added by path, not by their bytes"
    return RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail, hint)


POLL_S = 0.05


class QuestionSlots:
    """Slots for long work; a slot is held until the work ends, also when its client has left.

    ``closing`` is set when the server stops.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closing = asyncio.Event()
        self._in_use, self._lock = 0, threading.Lock()

    def acquire(self) -> None:
        """Acquire a slot, or raise TooManyRequests."""
        with self._lock:
            if self._in_use >= self.limit:
                raise TooManyRequests(f"{self.limit} of these run already, which is the limit")
            self._in_use += 1

    def release(self) -> None:
        """Release a slot, from any thread."""
        with self._lock:
            self._in_use -= 1

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot while the context lasts; raises as ``acquire``."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    @property
    def in_use(self) -> int:
        with self._lock:
            return self._in_use

    async def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no slot is in use; return False after ``timeout_s`` seconds."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.in_use and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_S)
        return not self.in_use
