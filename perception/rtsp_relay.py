"""Relays a connection to an RTSP camera to FFmpeg over loopback.

FFmpeg connects to wherever an RTSP server redirects it. So the host is checked and connected to
here, and what the server says is passed on message by message, but for a redirect, which ends it.
"""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import suppress
from threading import Thread
from typing import IO
from urllib.parse import urlsplit

from perception.allowed_hosts import AllowedHosts

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
