"""Sends events to webhooks, as Standard Webhooks (https://www.standardwebhooks.com) describes.

A host that is private, or of this machine, is refused unless the settings name it. Each address is
checked after the name is resolved, and connected to as it was checked, so a name server cannot
change it in between. Redirects are not followed, and the answer's body is not read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from perception.allowed_hosts import is_public

PREFIX = "whsec_"
"""Of a secret that is given in base64."""


class NotDelivered(Exception):
    """An event was not delivered; the message says why, and repeats no address or content."""


def check_host(host: str, port: int, private_hosts: Collection[str]) -> list[str]:
    """Return the addresses of a host, all of which may be connected to.

    Raises:
        NotDelivered: it has none, or one of them is private and the settings do not name the host.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered("the webhook's host is not known") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if host.casefold() in {name.casefold() for name in private_hosts}:
        return addresses
    if not addresses or not all(map(_is_public, addresses)):
        raise NotDelivered(
            "the webhook leads to a private network or to this machine: name its host in "
            "settings.alerts.private_hosts if that is wanted"
        )
    return addresses


def _is_public(address: str) -> bool:
    plain = address.partition("%")[0]
    try:
        return is_public(str(ipaddress.ip_address(plain)))
    except ValueError:
        return False


def send_webhook(
    url: str,
    event: str,
    body: bytes,
    secret: str | None,
    limit_s: float,
    private_hosts: Collection[str] = (),
) -> None:
    """Send an event, and check that it was accepted.

    Args:
        url: the webhook's address.
        event: the event's id, which receivers know repetitions by.
        body: the event as JSON.
        secret: signs it; None: it is not signed.
        limit_s: seconds for all of it, except for resolving the name.
        private_hosts: hosts that may be private.

    Raises:
        NotDelivered: it was not accepted with a status of 200 to 299 within that time.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    addresses = check_host(host, port, private_hosts)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Homer",
        "Connection": "close",
        **signed_headers(event, body, secret, int(time.time())),
    }
    try:
        deadline = time.monotonic() + limit_s
        with _connection(parts, addresses, port, deadline) as connection:
            path = parts.path or "/"
            connection.request(
                "POST", f"{path}?{parts.query}" if parts.query else path, body, headers
            )
            status = connection.getresponse().status
            if time.monotonic() >= deadline:
                raise TimeoutError  # What was cut off there may look like a whole answer.
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(f"the webhook did not answer: {type(error).__name__}") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the webhook answered with status {status}")


def signed_headers(event: str, body: bytes, secret: str | None, now: int) -> dict[str, str]:
    """Return the headers that name an event, and its HMAC-SHA256 if there is a secret."""
    headers = {"webhook-id": event, "webhook-timestamp": str(now)}
    if secret is None:
        return headers
    signed = b".".join((event.encode(), str(now).encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return headers | {"webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}


def _key(secret: str) -> bytes:
    with suppress(binascii.Error, ValueError):
        if secret.startswith(PREFIX):
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    return secret.encode()


@contextmanager
def _connection(
    parts: SplitResult, addresses: list[str], port: int, deadline: float
) -> Iterator[http.client.HTTPConnection]:
    """Connect to one of the addresses; the socket is shut down when the time is over.

    A time-out of the socket alone would begin anew with each byte that a slow server sends.
    """
    plain = _connected(addresses, port, deadline)

    def end() -> None:
        with suppress(OSError):
            plain.shutdown(socket.SHUT_RDWR)

    timer = Timer(max(0.0, deadline - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    connection = http.client.HTTPConnection(parts.hostname or "", port)
    try:
        connection.sock = _secured(plain, parts)
        yield connection
    finally:
        timer.cancel()
        connection.close()
        plain.close()


def _connected(addresses: list[str], port: int, deadline: float) -> socket.socket:
    failure: OSError = TimeoutError("no time was left")
    for address in addresses:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        try:
            return socket.create_connection((address, port), left_s)
        except OSError as error:
            failure = error
    raise failure


def _secured(plain: socket.socket, parts: SplitResult) -> socket.socket:
    if parts.scheme == "http":
        return plain
    # Of a duplicate: the plain one can still be shut down while this one shakes hands.
    return ssl.create_default_context().wrap_socket(plain.dup(), server_hostname=parts.hostname)
