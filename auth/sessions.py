"""Sessions and the throttling of sign-ins, in the memory of the app's process."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

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
        """End a session."""
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
        self._per_client, self._in_total, self._per_s, self._clock = (
            per_client,
            in_total,
            per_s,
            clock,
        )
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
            self._drop_old(now)
        return max(waits)

    def reset(self, client: str) -> None:
        """Forget the tries of a client that knows the password."""
        with self._lock:
            self._tries.pop(_network(client), None)

    def _seconds_left(self, tries: deque[float], limit: int, now: float) -> float:
        while tries and tries[0] <= now - self._per_s:
            tries.popleft()
        return tries[0] + self._per_s - now if len(tries) >= limit else 0.0

    def _drop_old(self, now: float) -> None:
        if len(self._tries) > MAX_ENTRIES:
            since = now - self._per_s
            # A client that only ever had to wait, because of the total limit, has no tries.
            expired = [name for name, own in self._tries.items() if not own or own[-1] <= since]
            for name in expired:
                del self._tries[name]


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
