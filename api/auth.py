"""Authentication: anybody on this machine without keys, else requests with an API key."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import RequestRefused, problem_response
from auth.connections import LOOPBACK, is_loopback, same_origin
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

    The keys are removed from the environment, so that child processes do not get them.

    Raises:
        SetupError: other machines could reach it and no key is set, or a key is invalid.
    """
    keys = parse_keys(read_key(KEY_VARIABLE) or "")
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
