"""A connection to an RTSP camera, passed on to FFmpeg over loopback.

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

from perception.allowed_hosts import Reach

MOVED = "it redirects to another address; name that address yourself"

_PORTS = {"rtsp": 554, "rtsps": 322}
_STATUS = re.compile(rb"RTSP/1\.[0-9] ([0-9]{3})(?: [\x20-\x7e]*)?")
_ASKED = re.compile(rb"[A-Z_]+ [\x21-\x7e]+ RTSP/1\.[0-9]")
_DIGITS = re.compile(rb"[0-9]{1,6}")
_ODD = re.compile(rb"[\x00-\x08\x0a-\x1f]|^\$")
_LONGEST_LINE = 8192
_MOST_LINES = 200
_CHUNK = 1 << 16
_LENGTH = b"content-length"


class Relay:
    """An open connection to a camera. ``url`` is where FFmpeg finds it.

    Args:
        address: an rtsp or rtsps address.
        connect_s: seconds until the camera answers.
        quiet_s: seconds in which something must come.

    Raises:
        Forbidden: the host may not be reached.
        OSError: it does not answer.
    """

    end = False

    def __init__(self, address: str, connect_s: float, quiet_s: float) -> None:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._camera = Reach(host).connect((host, port), connect_s)
        if parts.scheme == "rtsps":
            self._camera = _encrypted(self._camera, host)
        self._camera.settimeout(quiet_s)
        self._inner: socket.socket | None = None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._listener.settimeout(connect_s)
        who, at, _ = parts.netloc.rpartition("@")
        place = f"{who}{at}127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = parts._replace(scheme="rtsp", netloc=place, fragment="").geturl()
        self.redirected = False
        Thread(target=self._pass, name="relay", daemon=True).start()

    def close(self) -> None:
        """Let go of the camera."""
        for one in (self._listener, self._inner, self._camera):
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _pass(self) -> None:
        with suppress(OSError, ValueError):
            self._inner, _ = self._listener.accept()
            self._listener.close()
            Thread(target=self._up, name="relay up", daemon=True).start()
            with self._camera.makefile("rb") as told:
                while message := self._message(told):
                    self._inner.sendall(message)
        self.close()

    def _up(self) -> None:
        with suppress(OSError):
            while self._inner is not None and (data := self._inner.recv(_CHUNK)):
                self._camera.sendall(data)
        self.close()

    def _message(self, told: IO[bytes]) -> bytes:
        """The next message or packet; nothing where there is none, or a redirect.

        Raises:
            ValueError: it is no message.
        """
        first = told.read(1)
        while first in (b"\r", b"\n"):
            first = told.read(1)
        if first == b"$":
            head = _exactly(told, 3)
            return first + head + _exactly(told, int.from_bytes(head[1:]))
        if not first:
            return b""
        lines = _head(told, first)
        status = _STATUS.fullmatch(lines[0])
        if not status and not _ASKED.fullmatch(lines[0]):
            raise ValueError("no RTSP message")
        self.redirected = bool(status and status[1].startswith(b"3"))
        return b"" if self.redirected else _written(lines, told)


def _encrypted(camera: socket.socket, host: str) -> socket.socket:
    """The connection with TLS; cameras have certificates of their own making."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return context.wrap_socket(camera, server_hostname=host)
    except BaseException:
        camera.close()
        raise


def _exactly(told: IO[bytes], size: int) -> bytes:
    data = told.read(size)
    if len(data) < size:
        raise ValueError("cut short")
    return data


def _head(told: IO[bytes], first: bytes) -> list[bytes]:
    """The lines up to the empty one, which FFmpeg reads just so."""
    lines = [_line(told, first)]
    while line := _line(told):
        lines.append(line)
        if len(lines) > _MOST_LINES:
            raise ValueError("too many lines")
    return lines


def _line(told: IO[bytes], first: bytes = b"") -> bytes:
    line = first + told.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ValueError("cut short, or too long")
    line = line.replace(b"\r", b"").removesuffix(b"\n")
    if _ODD.search(line):
        raise ValueError("no line of words")
    return line


def _written(lines: list[bytes], told: IO[bytes]) -> bytes:
    """A message with just one length, so that nobody takes its body for another message."""
    fields = [(line.partition(b":")[0].strip().lower(), line) for line in lines[1:]]
    lengths = {line.partition(b":")[2].strip() for name, line in fields if name == _LENGTH}
    if len(lengths) > 1 or not all(_DIGITS.fullmatch(one) for one in lengths):
        raise ValueError("no length")
    body = _exactly(told, int(next(iter(lengths), b"0")))
    rest = [line for name, line in fields if name != _LENGTH]
    return b"\r\n".join([lines[0], *rest, b"Content-Length: %d" % len(body), b"", body])
