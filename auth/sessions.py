"""Sessions and the throttling of sign-ins, in the memory of the app's process."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from domain.errors import SetupError
from store.files import create_private
from store.home import Home

SESSION_S = 7 * 24 * 3600.0
MAX_ENTRIES = 10_000
"""Limit of sessions, and of clients with failed sign-ins, held in memory."""

Clock = Callable[[], float]


class Sessions:
    """Sessions by the digests of their tokens.

    A session ends after a week, at sign-out, with the process, and when what it was begun with is
    no more: the password's hash, or the provider's user.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._sessions: dict[bytes, tuple[float, str]] = {}

    def begin(self, holder: str) -> str:
        """Begin a session with the current hash of the password, or a user; return its token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= MAX_ENTRIES:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[_digest(token)] = (self._clock() + SESSION_S, holder)
        return token

    def is_valid(self, token: str, holder: str | None) -> bool:
        """Return whether a token belongs to a session that is still valid."""
        with self._lock:
            expires_at, begun_with = self._sessions.get(_digest(token), (0.0, ""))
        return self._clock() < expires_at and begun_with == holder

    def end(self, token: str) -> None:
        with self._lock:
            self._sessions.pop(_digest(token), None)


class Throttle:
    """Allows ``per_client`` failures of a client, ``in_total`` of all, within ``per_s`` seconds."""

    def __init__(
        self,
        per_client: int = 5,
        in_total: int = 60,
        per_s: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._per_client, self._in_total = per_client, in_total
        self._per_s, self._clock = per_s, clock
        self._lock = threading.Lock()
        self._tries: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def wait(self, client: str) -> float:
        """Count a try, and return the seconds that the client has to wait: 0 if it may try now.

        A try counts before it is checked, so that concurrent tries do not evade the limit.
        """
        name, now = _network(client), self._clock()
        with self._lock:
            own_tries = self._tries.setdefault(name, deque())
            waits = [
                self._seconds_left(own_tries, self._per_client, now),
                self._seconds_left(self._all, self._in_total, now),
            ]
            if not any(waits):
                own_tries.append(now)
                self._all.append(now)
            if len(self._tries) > MAX_ENTRIES:
                since = now - self._per_s
                # A client that only ever had to wait, because of the total limit, has no tries.
                expired = [name for name, own in self._tries.items() if not own or own[-1] <= since]
                for name in expired:
                    del self._tries[name]
        return max(waits)

    def reset(self, client: str) -> None:
        """Forget the tries of a client that knows the password."""
        with self._lock:
            self._tries.pop(_network(client), None)

    def _seconds_left(self, tries: deque[float], limit: int, now: float) -> float:
        while tries and tries[0] <= now - self._per_s:
            tries.popleft()
        return tries[0] + self._per_s - now if len(tries) >= limit else 0.0


def _network(client: str) -> str:
    """Return the /64 network of an IPv6 address, else the address; unwrap mapped IPv4."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if not isinstance(address, IPv6Address):
        return client
    return str(address.ipv4_mapped) if address.ipv4_mapped else address.exploded[:19]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# Signed links that expire, so that an address alone gives no access.
#
# Links to media are signed with a key of the process. Links that are handed on are signed with a
# key in the data directory: it is in no database, back-up or export.

VALID_HOURS = 12
KEY_BYTES = 32
_SECRET = secrets.token_bytes(KEY_BYTES)
"""The key of this process: links expire with it."""


def sign_path(path: str, now: float | None = None) -> str:
    """Add an expiry and a signature to a path; the link is stable for hours, for players."""
    period = VALID_HOURS * 3600
    until = int(((time.time() if now is None else now) // period + 2) * period)
    return sign_until(path, until)


def sign_until(path: str, until: int, secret: bytes = _SECRET) -> str:
    """Add an expiry, in seconds since 1970, and a signature to a path."""
    return f"{path}?until={until}&key={_signature(path, until, secret)}"


def is_signed(
    path: str, until: str, key: str, now: float | None = None, secret: bytes = _SECRET
) -> bool:
    """Return whether the link was signed with ``secret``, and has not expired."""
    if not until.isascii() or not until.isdigit() or len(until) > 12:
        return False
    in_time = int(until) > (time.time() if now is None else now)
    return in_time and hmac.compare_digest(
        _signature(path, int(until), secret).encode(), key.encode("utf-8", "surrogatepass")
    )


def _signature(path: str, until: int, secret: bytes) -> str:
    message = f"{path}\n{until}".encode()
    return hmac.new(secret, message, hashlib.sha256).hexdigest()[:32]


def link_key(home: Home) -> bytes:
    """Return the key of the data directory's links; it is made when it is first needed.

    Raises:
        SetupError: it cannot be read or made.
    """
    path = home.make().root / "links.key"
    try:
        if not path.exists():
            # Make the file; of several processes that do so at once, the first one's stays.
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            with os.fdopen(create_private(temporary, new=True), "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
            try:
                with suppress(FileExistsError):
                    path.hardlink_to(temporary)
            finally:
                temporary.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}") from error
    if len(key) != KEY_BYTES:
        raise SetupError(f"{path} is damaged: remove it, which ends all links, and try again")
    return key
