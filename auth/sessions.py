"""Who is signed in, and how often one may try: in the memory of the app's process."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

LASTS_S = 7 * 24 * 3600.0
MOST = 10_000
"""Sessions, and clients that failed, which are remembered at a time."""

Clock = Callable[[], float]


class Sessions:
    """Tokens that browsers hold; only their digests are kept.

    A session ends after a week, when it is signed out, with the process, and when the password is
    another one than the one it was begun with.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._known: dict[bytes, tuple[float, str]] = {}

    def begin(self, password: str) -> str:
        """The token of a new session; ``password`` is the hash that it was begun with."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._known) >= MOST:
                self._known.pop(next(iter(self._known)))
            self._known[_digest(token)] = (self._clock() + LASTS_S, password)
        return token

    def holds(self, token: str, password: str | None) -> bool:
        """Whether the token is of a session that goes on."""
        with self._lock:
            until, begun = self._known.get(_digest(token), (0.0, ""))
        return self._clock() < until and begun == password

    def end(self, token: str) -> None:
        """Ends a session."""
        with self._lock:
            self._known.pop(_digest(token), None)


class Throttle:
    """At most ``each`` failures of one client within ``per_s`` seconds, and ``every`` of all."""

    def __init__(
        self, each: int = 5, every: int = 60, per_s: float = 60.0, clock: Clock = time.monotonic
    ) -> None:
        self._each, self._every, self._per_s, self._clock = each, every, per_s, clock
        self._lock = threading.Lock()
        self._tries: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def wait(self, client: str) -> float:
        """Counts a try; seconds that the client has to wait, 0 where it may try now.

        A try counts before it is looked at, so that many at once are no way around.
        """
        name, now = _network(client), self._clock()
        with self._lock:
            mine = self._tries.setdefault(name, deque())
            waits = [self._left(mine, self._each, now), self._left(self._all, self._every, now)]
            if not any(waits):
                mine.append(now)
                self._all.append(now)
            self._drop_old(now)
        return max(waits)

    def forgive(self, client: str) -> None:
        """The client has the password: what it tried before counts no more."""
        with self._lock:
            self._tries.pop(_network(client), None)

    def _left(self, tries: deque[float], most: int, now: float) -> float:
        while tries and tries[0] <= now - self._per_s:
            tries.popleft()
        return tries[0] + self._per_s - now if len(tries) >= most else 0.0

    def _drop_old(self, now: float) -> None:
        if len(self._tries) > MOST:
            since = now - self._per_s
            # Whoever was only ever told to wait, since all together had tried too often, has none.
            old = [name for name, own in self._tries.items() if not own or own[-1] <= since]
            for name in old:
                del self._tries[name]


def _network(client: str) -> str:
    """Whoever has one IPv6 address has all of its /64; one that stands for IPv4 is just that."""
    try:
        found = ip_address(client)
    except ValueError:
        return client
    if not isinstance(found, IPv6Address):
        return client
    return str(found.ipv4_mapped) if found.ipv4_mapped else found.exploded[:19]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
