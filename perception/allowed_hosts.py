"""Limits the hosts that a source may lead to: any public host, and the one private host named.

A playlist, a redirect or a name server may point a reader at services that only this machine or its
network can reach. So each address is checked after its name is resolved, and connected to as it was
checked. A connection to an RTSP camera is relayed to FFmpeg over loopback.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from threading import Thread
from typing import IO
from urllib.parse import urlsplit

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


# What was once public stays so: a name whose address turns private is not followed.
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


REDIRECTED = "it redirects to another address; name that address yourself"

_PORTS = {"rtsp": 554, "rtsps": 322}
_STATUS_LINE = re.compile(rb"RTSP/1\.[0-9] ([0-9]{3})(?: [\x20-\x7e]*)?")
_REQUEST_LINE = re.compile(rb"[A-Z_]+ [\x21-\x7e]+ RTSP/1\.[0-9]")
_DIGITS = re.compile(rb"[0-9]{1,6}")
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0a-\x1f]|^\$")
_MAX_LINE = 8192
_MAX_LINES = 200
_CHUNK = 1 << 16
_LENGTH_HEADER = b"content-length"


# FFmpeg connects to wherever an RTSP server redirects it. So the host is checked and connected to
# here, and what the server says is passed on message by message, but for a redirect, which ends it.
class RtspRelay:
    """An open connection to a camera. ``url`` is where FFmpeg connects.

    Args:
        address: an rtsp or rtsps address.
        connect_s: seconds until the camera answers.
        quiet_s: seconds in which something must come.

    Raises:
        HostForbidden: the host may not be reached.
        OSError: it does not answer.
    """

    ended = False

    def __init__(self, address: str, connect_s: float, quiet_s: float) -> None:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._camera = AllowedHosts(host).connect((host, port), connect_s)
        if parts.scheme == "rtsps":
            # Cameras have self-signed certificates.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            try:
                self._camera = context.wrap_socket(self._camera, server_hostname=host)
            except BaseException:
                self._camera.close()
                raise
        self._camera.settimeout(quiet_s)
        self._inner: socket.socket | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._listener.settimeout(connect_s)
        userinfo, at, _ = parts.netloc.rpartition("@")
        netloc = f"{userinfo}{at}127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = parts._replace(scheme="rtsp", netloc=netloc, fragment="").geturl()
        self.redirected = False
        Thread(target=self._relay_to_client, name="relay", daemon=True).start()

    def close(self) -> None:
        for open_socket in (self._listener, self._inner, self._camera):
            if open_socket is not None:
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)
                open_socket.close()

    def _relay_to_client(self) -> None:
        with suppress(OSError, ValueError):
            self._inner, _ = self._listener.accept()
            self._listener.close()
            Thread(target=self._relay_to_camera, name="relay up", daemon=True).start()
            with self._camera.makefile("rb") as stream:
                while message := self._read_message(stream):
                    self._inner.sendall(message)
        self.close()

    def _relay_to_camera(self) -> None:
        with suppress(OSError):
            while self._inner is not None and (data := self._inner.recv(_CHUNK)):
                self._camera.sendall(data)
        self.close()

    def _read_message(self, stream: IO[bytes]) -> bytes:
        """Read the next message or packet; empty at the end, or on a redirect.

        Raises:
            ValueError: it is no message.
        """
        first = stream.read(1)
        while first in (b"\r", b"\n"):
            first = stream.read(1)
        if first == b"$":
            head = _read_exactly(stream, 3)
            return first + head + _read_exactly(stream, int.from_bytes(head[1:]))
        if not first:
            return b""
        lines = [_read_line(stream, first)]
        while line := _read_line(stream):
            lines.append(line)
            if len(lines) > _MAX_LINES:
                raise ValueError("too many lines")
        status = _STATUS_LINE.fullmatch(lines[0])
        if not status and not _REQUEST_LINE.fullmatch(lines[0]):
            raise ValueError("no RTSP message")
        self.redirected = bool(status and status[1].startswith(b"3"))
        return b"" if self.redirected else _encode_message(lines, stream)


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("cut short")
    return data


def _read_line(stream: IO[bytes], first: bytes = b"") -> bytes:
    line = first + stream.readline(_MAX_LINE)
    if not line.endswith(b"\n"):
        raise ValueError("cut short, or too long")
    line = line.replace(b"\r", b"").removesuffix(b"\n")
    if _CONTROL_BYTES.search(line):
        raise ValueError("no line of words")
    return line


def _encode_message(lines: list[bytes], stream: IO[bytes]) -> bytes:
    """Encode a message with exactly one length, so that its body is not taken for a message."""
    headers = [(line.partition(b":")[0].strip().lower(), line) for line in lines[1:]]
    lengths = {line.partition(b":")[2].strip() for name, line in headers if name == _LENGTH_HEADER}
    if len(lengths) > 1 or not all(_DIGITS.fullmatch(length) for length in lengths):
        raise ValueError("no length")
    body = _read_exactly(stream, int(next(iter(lengths), b"0")))
    rest = [line for name, line in headers if name != _LENGTH_HEADER]
    return b"\r\n".join([lines[0], *rest, b"Content-Length: %d" % len(body), b"", body])
