"""Limits the hosts that a source may lead to: any public host, and the one private host named.

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

from domain.words import marked

_LAST_32_BITS = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""Networks of IPv6 whose addresses end in one of IPv4: compatible (RFC 4291, section 2.5.5.1),
translated (RFC 7915) and of NAT64 (RFC 6052)."""
_LOCAL = tuple(map(ipaddress.IPv6Network, ("fec0::/10", "64:ff9b:1::/48")))
"""Networks of a site of its own that ``is_global`` holds for public: RFC 3879 and RFC 8215."""
_known_public: set[str] = set()
"""Names that had a public address at some time; they are held to that while the process lives."""


class HostForbidden(OSError):
    """A source leads to a host that it may not reach. The message repeats no address."""


PRIVATE_ADDRESS = marked(
    "it leads to a private address, or one of this machine; name that address yourself"
)


def is_public(address: str) -> bool:
    """Tell whether an IP address, and any IPv4 address within it, is on the public internet."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        embedded = None
    elif any(ip in network for network in _LAST_32_BITS):
        embedded = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    else:
        teredo = ip.teredo[1] if ip.teredo else None
        embedded = ip.ipv4_mapped or ip.sixtofour or teredo
    if any(ip in network for network in _LOCAL):
        return False
    return ip.is_global and not ip.is_multicast and (embedded is None or is_public(str(embedded)))


class AllowedHosts:
    """The hosts that a source may lead to.

    Args:
        host: the one that the user named; it may be private. None: no private host is allowed.
        proxies: those of the environment, which may be private too.
    """

    def __init__(self, host: str | None, *proxies: str) -> None:
        self._host = (host or "").lower()
        named = [host] if host else []
        self._private_addresses = frozenset[str]().union(
            *map(_private_addresses, [*named, *proxies])
        )

    def is_private(self, host: str) -> bool:
        """Tell whether ``host`` is the host that the user named, and private."""
        return bool(self._private_addresses) and host.lower() == self._host

    def check_address(self, address: str) -> None:
        """Check that an IP address may be reached.

        Raises:
            HostForbidden: it may not be, or is none.
        """
        try:
            allowed = self._allows(address)
        except ValueError:
            allowed = False
        if not allowed:
            raise HostForbidden(PRIVATE_ADDRESS)

    def check(self, host: str) -> None:
        """Check that a host may be reached; a host that cannot be resolved here passes.

        Raises:
            HostForbidden: it may not be.
        """
        try:
            addresses = _resolve(host, None)
        except (OSError, UnicodeError):
            return
        if not any(map(self._allows, addresses)):
            raise HostForbidden(PRIVATE_ADDRESS)

    def connect(
        self, endpoint: tuple[str, int], timeout: float | None = None, *_: object
    ) -> socket.socket:
        """Connect like ``socket.create_connection``, to an address that was checked.

        Raises:
            HostForbidden: the host has none that may be reached.
            OSError: it does not answer.
        """
        host, port = endpoint
        try:
            allowed = [ip for ip in _resolve(host, port) if self._allows(ip)]
        except UnicodeError as error:
            raise OSError(marked("no host has such a name")) from error
        failure: OSError = HostForbidden(PRIVATE_ADDRESS)
        for address in allowed:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as error:
                failure = error
        raise failure

    def _allows(self, address: str) -> bool:
        return address in self._private_addresses or is_public(address)


def _private_addresses(host: str) -> frozenset[str]:
    """Return the addresses of a host that was never public; empty if it cannot be resolved."""
    with suppress(OSError, UnicodeError):  # Whoever connects to it tells.
        addresses = _resolve(host, None)
        return frozenset() if host.lower() in _known_public else frozenset(addresses)
    return frozenset()


_allowed: ContextVar[AllowedHosts | None] = ContextVar("only", default=None)


@contextmanager
def connections_limited_to(allowed: AllowedHosts) -> Iterator[None]:
    """Refuse connections of this thread's Python code to other hosts within the block.

    For libraries that connect in ways of their own. Python tells of each connection before it is
    made (PEP 578), and with the address that a name was resolved to.
    """
    _install_audit_hook()
    token = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(token)


@cache
def _install_audit_hook() -> None:
    """Install the audit hook, once per process: Python cannot remove one."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[object, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto"):
        return
    allowed, address = _allowed.get(), args[1]
    if allowed is not None and isinstance(address, tuple):  # Else it is a path of this machine's.
        allowed.check_address(str(address[0]))


def _resolve(host: str, port: int | None) -> list[str]:
    """Resolve a host to its addresses, and remember whether one of them is public."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    if any(map(is_public, addresses)):
        _known_public.add(host.lower())
    return addresses
