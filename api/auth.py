"""Who may come in: on this machine anybody, from elsewhere whoever bears a key."""

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

from api.problems import RequestRefused, answered
from auth.listen import LOOPBACK, is_loopback
from auth.origins import same_site
from domain.audit import acting_user
from domain.errors import SetupError
from models.secrets import read_key

VARIABLE = "HOMER_API_KEY"
NAMES = "HOMER_API_NAMES"
"""Names under which a proxy leads to the API, with commas between."""
LEAST = 20
"""Characters of a key."""
OPEN = ("/health", "/docs", "/openapi.json")
"""What tells nothing of the library, and needs no key."""

_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_PASSED_ON = re.compile(r"forwarded|via|x-forwarded-.*|x-real-ip")
"""Headers that proxies add. Their clients are others, though they come from this machine."""


@dataclass(frozen=True)
class Key:
    """A key by its digest, and whom the audit log names for it."""

    label: str
    digest: bytes = field(repr=False)


@dataclass(frozen=True)
class AccessRules:
    """The keys that let in, none being anybody; ``names`` are the hosts answered to, none all."""

    keys: tuple[Key, ...] = ()
    names: tuple[str, ...] = ()


def ways_in(host: str) -> AccessRules:
    """How one comes in to an API that listens on ``host``.

    The keys are taken out of the environment: no process that is begun later sees them.

    Raises:
        SetupError: others could reach it and no key is set, or a key is too short.
    """
    keys = read_keys(read_key(VARIABLE) or "")
    os.environ.pop(VARIABLE, None)
    given = os.environ.get(NAMES, "").lower().split(",")
    others = tuple(name.strip() for name in given if name.strip())
    if not keys and (others or not is_loopback(host)):
        raise SetupError(
            f"the API would be open to everybody who can reach {', '.join(others) or host}. Give "
            f"it a key first: set {VARIABLE} to {LEAST} characters or more, as `openssl rand -hex "
            f"24` prints them (docs/api.md, Keys)"
        )
    return AccessRules(keys, (*_own(host), *others) if is_loopback(host) else others)


def _own(host: str) -> tuple[str, ...]:
    """The names of this machine, that of the very address among them."""
    named = f"[{host}]" if ":" in host else host.lower()
    return LOOPBACK if named in LOOPBACK else (*LOOPBACK, named)


def read_keys(given: str) -> tuple[Key, ...]:
    """The keys of ``KEY`` or ``LABEL:KEY,LABEL:KEY``; one without a label is called ``key``.

    Raises:
        SetupError: one is too short, or has what no header can carry, or its label is none. It
            is named by its place only: what was meant as a label may be a secret.
    """
    every = (one.strip() for one in given.split(","))
    return tuple(_read(one, place) for place, one in enumerate(every, 1) if one)


def _read(given: str, place: int) -> Key:
    label, colon, secret = given.rpartition(":")
    if len(secret) < LEAST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise SetupError(
            f"{VARIABLE}: key {place} is not {LEAST} or more letters, digits and signs without "
            "spaces; a comma ends a key, and a colon its label"
        )
    if colon and not _LABEL.fullmatch(label):
        raise SetupError(
            f"{VARIABLE}: the label of key {place} is not 1 to 32 letters, digits, '_', '.' and "
            "'-'; a key has no colon in it"
        )
    return Key(label or "key", _digest(secret))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def label_of(keys: Sequence[Key], given: str) -> str | None:
    """Whose key it is; None where it is nobody's. It takes as long for any."""
    digest, found = _digest(given), None
    for key in keys:
        found = key.label if hmac.compare_digest(key.digest, digest) else found
    return found


class ApiAuth:
    """Lets those in who may, and tells the audit log who they are."""

    def __init__(self, app: ASGIApp, ways: AccessRules) -> None:
        self._app, self._ways = app, ways

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or says why not."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            who = self._who(scope)
        except RequestRefused as refused:
            return await answered(refused)(scope, receive, send)
        token = acting_user.set(f"api ({who})")
        try:
            return await self._app(scope, receive, send)
        finally:
            acting_user.reset(token)

    def _who(self, scope: Scope) -> str:
        headers, open_to_all = Headers(scope=scope), scope["path"] in OPEN
        host = _host_in(headers.get("host", ""))
        if self._ways.names and host not in self._ways.names and not open_to_all:
            raise RequestRefused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host",
                "this server does not answer to that name",
                f"ask {', '.join(self._ways.names)}, or have the operator name the host in {NAMES}",
            )
        if not same_site(headers.get("origin"), headers.get("host", "")):
            told = "ask from a program, or from a page of this very server"
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, "origin", "asked by a page of another site", told
            )
        if open_to_all:
            return _client(scope)
        return self._bearer(headers) if self._ways.keys else _nobody_between(scope, headers)

    def _bearer(self, headers: Headers) -> str:
        kind, _, given = headers.get("authorization", "").partition(" ")
        label = label_of(self._ways.keys, given.strip()) if kind.lower() == "bearer" else None
        if label is not None:
            return label
        told = "send the header 'Authorization: Bearer KEY'; the operator of the server has keys"
        wrong = "this is no key of this server" if given else "a key is needed here"
        refused = RequestRefused(HTTPStatus.UNAUTHORIZED, "key", wrong, told)
        refused.headers = {"WWW-Authenticate": 'Bearer realm="homer"'}
        raise refused


def _nobody_between(scope: Scope, headers: Headers) -> str:
    """The client of a server without keys, which is one of this machine only if no proxy asks."""
    if any(_PASSED_ON.fullmatch(name) for name in headers):
        detail = "passed on by a proxy, for anybody who can reach that: this server has no key"
        told = f"have the operator set {VARIABLE} (docs/api.md, Keys)"
        raise RequestRefused(HTTPStatus.FORBIDDEN, "proxy", detail, told)
    return _client(scope)


def _host_in(header: str) -> str:
    """The name in a ``Host`` header, without the port."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdigit() else header).lower()


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
