"""Which hosts a source may lead to: any public one, and of others only the one the user named.

A playlist, a redirect or a name server may point a reader at services that only this machine or its
network can reach. So each address is checked after its name is resolved, and connected to as it was
checked. What was once public stays so: a name whose address turns private is not followed.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TypeAlias

Ip: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_seen_public: set[str] = set()
"""Names that had a public address at some time; they are held to that while the process lives."""


class Forbidden(OSError):
    """A source leads to where it may not. The message repeats no address."""


PRIVATE = "it leads to a private address, or one of this machine; name that address yourself"


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, and so does any IPv4 one within it."""
    ip = ipaddress.ip_address(address)
    inner = _inner(ip)
    return ip.is_global and not ip.is_multicast and (inner is None or is_public(str(inner)))


def _inner(ip: Ip) -> Ip | None:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    teredo = ip.teredo[1] if ip.teredo else None
    return ip.ipv4_mapped or ip.sixtofour or teredo


class Reach:
    """The hosts that a source may lead to.

    Args:
        host: the one that the user named; it may be private.
        proxies: those of the environment, which may be private too.
    """

    def __init__(self, host: str, *proxies: str) -> None:
        self._host = host.lower()
        self._named = _private(host).union(*map(_private, proxies))

    def is_private(self, host: str) -> bool:
        """Whether this is the host that the user named, and a private one."""
        return bool(self._named) and host.lower() == self._host

    def check_address(self, address: str) -> None:
        """Pass an IP address that may be reached.

        Raises:
            Forbidden: it may not be, or is none.
        """
        try:
            allowed = self._allows(address)
        except ValueError:
            allowed = False
        if not allowed:
            raise Forbidden(PRIVATE)

    def check(self, host: str) -> None:
        """Pass a host that may be reached, and one that cannot be resolved here.

        Raises:
            Forbidden: it may not be.
        """
        try:
            found = _resolved(host, None)
        except (OSError, UnicodeError):
            return
        if not any(map(self._allows, found)):
            raise Forbidden(PRIVATE)

    def connect(
        self, place: tuple[str, int], timeout: float | None = None, *_: object
    ) -> socket.socket:
        """Connect as ``socket.create_connection`` does, to an address that was checked.

        Raises:
            Forbidden: the host has none that may be reached.
            OSError: it does not answer.
        """
        host, port = place
        try:
            allowed = [one for one in _resolved(host, port) if self._allows(one)]
        except UnicodeError as error:
            raise OSError("no host has such a name") from error
        failure: OSError = Forbidden(PRIVATE)
        for address in allowed:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as error:
                failure = error
        raise failure

    def _allows(self, address: str) -> bool:
        return address in self._named or is_public(address)


def _private(host: str) -> frozenset[str]:
    """The addresses of a host that was never public; none where it cannot be resolved."""
    with suppress(OSError, UnicodeError):  # Whoever connects to it tells.
        found = _resolved(host, None)
        return frozenset() if host.lower() in _seen_public else frozenset(found)
    return frozenset()


_only: ContextVar[Reach | None] = ContextVar("only", default=None)


@contextmanager
def only(reach: Reach) -> Iterator[None]:
    """Within this block no Python code of this thread connects anywhere else.

    For libraries that connect in ways of their own. Python tells of each connection before it is
    made (PEP 578), and with the address that a name was resolved to.
    """
    _listen()
    token = _only.set(reach)
    try:
        yield
    finally:
        _only.reset(token)


@cache
def _listen() -> None:
    """Once a process: such a hook cannot be taken away again."""
    sys.addaudithook(_hear)


def _hear(event: str, args: tuple[object, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto"):
        return
    reach, address = _only.get(), args[1]
    if reach is not None and isinstance(address, tuple):  # Else it is a path of this machine's.
        reach.check_address(str(address[0]))


def _resolved(host: str, port: int | None) -> list[str]:
    """The addresses of a host; notes that it is public where one of them is."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if any(map(is_public, addresses)):
        _seen_public.add(host.lower())
    return addresses
