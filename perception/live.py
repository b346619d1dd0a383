"""Identifies and opens live sources, and explains why one cannot be opened.

An address may hold a name, a password or a key. It is used to connect and for nothing else: what
is stored, shown or logged is ``LiveSource.name``, and errors of FFmpeg, whose texts repeat the
address, are never passed on.
"""

from __future__ import annotations

import hashlib
import os
import re
import select
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.error import HTTPError
from urllib.parse import SplitResult, parse_qsl, urlsplit

import av

from domain.errors import InputError, SetupError
from domain.words import make_storable
from perception.allowed_hosts import REDIRECTED, AllowedHosts, HostForbidden, RtspRelay
from perception.containers import FORMATS
from perception.http_source import open_http

if TYPE_CHECKING:
    from av.container import InputContainer

    from domain.media import StreamSettings


# Reads a pipe without blocking: a reader that is asked to stop does so soon.

POLL_S = 0.25
"""How often a reader that waits looks whether to stop."""


class Pipe:
    """A pipe as a readable file. ``ended`` tells that the writer closed it.

    ``is_timed_out`` gives up waiting for a writer, but never one that has begun to write.
    """

    def __init__(
        self,
        descriptor: int,
        is_stopping: Callable[[], bool],
        *,
        owned: bool,
        is_timed_out: Callable[[], bool] = lambda: False,
    ) -> None:
        self._descriptor, self._is_stopping, self._owned = descriptor, is_stopping, owned
        self._is_timed_out, self._began = is_timed_out, False
        self.ended = False

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes, waiting for some; empty at the end or when asked to stop."""
        while not (self._is_stopping() or (not self._began and self._is_timed_out())):
            ready, _, _ = select.select([self._descriptor], [], [], POLL_S)
            if not ready:
                continue
            data = os.read(self._descriptor, size)
            if data or self._began or not self._owned:
                self._began, self.ended = True, not data
                return data
            # Wait a little: a FIFO without a writer is always ready, with nothing to read.
            select.select([], [], [], POLL_S)
        return b""

    def close(self) -> None:
        """Close a FIFO; standard input stays open."""
        if self._owned:
            os.close(self._descriptor)


def open_pipe(
    address: str, is_stopping: Callable[[], bool], is_timed_out: Callable[[], bool]
) -> Pipe:
    """Open standard input for ``-``, else a FIFO, without waiting for its writer.

    Raises:
        OSError: it cannot be opened.
    """
    if address == "-":
        return Pipe(sys.stdin.fileno(), is_stopping, owned=False, is_timed_out=is_timed_out)
    descriptor = os.open(address, os.O_RDONLY | os.O_NONBLOCK)
    return Pipe(descriptor, is_stopping, owned=True, is_timed_out=is_timed_out)


STDIN = "-"
_SCHEMES = ("rtsp", "rtsps", "http", "https")
_CAMERA_FORMATS = "video4linux2,v4l2"
_SHORT_NUMBER = re.compile(r"[0-9]{1,3}", re.ASCII)
_SECRET = re.compile(r"pass|pw|pin|key|secret|token|sig|auth|user|login|session|sid|code", re.I)


class SourceUnreachable(SetupError):
    """A live source does not answer, or sends no readable media."""


class SourceConnection(Protocol):
    """A connection between FFmpeg and a source, closed after it."""

    @property
    def ended(self) -> bool:
        """Tell whether the source itself has ended, not only the connection."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True)
class LiveSource:
    """A live source. ``name`` may be shown; ``address`` is for connecting only.

    ``kind``: network, camera or pipe. A pipe waits for its reader, so nothing of it is left out.
    """

    kind: str
    name: str
    address: str = field(repr=False)
    title: str = ""

    @property
    def id(self) -> str:
        """Return 16 hex digits: the same source under the same title is the same video."""
        described = f"live {self.name} {self.title}"
        return hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Return what the video is called: the title, else the source."""
        return self.title or self.name


def live_source(text: str, title: str = "") -> LiveSource:
    """Parse what a user named: an address, a camera device, a FIFO, or ``-`` for standard input.

    Raises:
        InputError: it is none of these. The message does not repeat an address.
    """
    if text == STDIN:
        if not title:
            raise InputError("standard input has no name of its own: give one with --title NAME")
        return LiveSource("pipe", STDIN, STDIN, title)
    if "://" in text:
        return LiveSource("network", redacted_address(text), text, title)
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise InputError(f"{path}: no such device or pipe; {_SOURCE_KINDS}") from None
    name = make_storable(str(path.absolute()))
    if stat.S_ISFIFO(mode):
        return LiveSource("pipe", name, str(path), title)
    if stat.S_ISCHR(mode):
        return LiveSource("camera", name, str(path), title)
    raise InputError(f"{path}: a file is watched with `homer ingest {path}`; {_SOURCE_KINDS}")


_SOURCE_KINDS = (
    "a live source is rtsp://, http:// or https:// (HLS), a camera (/dev/video0), a FIFO, or -"
)


def redacted_address(text: str) -> str:
    """Remove name, password, keys and other possible secrets from an address.

    Raises:
        InputError: it is no address that a stream may come from.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = SplitResult("", "", "", "", ""), None, None
    if parts.scheme not in _SCHEMES or not host:
        raise InputError(f"this address cannot be watched: {_SOURCE_KINDS}") from None
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        # Else a part of a password with / ? or # in it would be taken for a path, and told.
        raise InputError("write the / ? # @ of a name or password as %2F %3F %23 %40") from None
    host = f"[{host}]" if ":" in host else host
    redacted = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"
    # A short number tells cameras apart; anything longer may be a key.
    told = [
        (
            key if re.fullmatch(r"[A-Za-z_]{1,20}", key) else "...",
            value if _SHORT_NUMBER.fullmatch(value) and not _SECRET.search(key) else "...",
        )
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    query = "&".join(map("=".join, told))
    return make_storable(f"{redacted}?{query}" if query else redacted)


def connect(
    source: LiveSource,
    settings: StreamSettings,
    is_stopping: Callable[[], bool],
    is_timed_out: Callable[[], bool] = lambda: False,
) -> tuple[InputContainer, SourceConnection | None]:
    """Open a live source; close what is returned, the container first.

    Args:
        settings: how long to wait for it.
        is_stopping: whether to read no more of a pipe.
        is_timed_out: whether to wait no longer for the writer of a pipe.

    Raises:
        SourceUnreachable: it does not answer, or sends nothing that can be read.
    """
    connection: SourceConnection | None = None
    try:
        if source.kind == "pipe":
            connection = open_pipe(source.address, is_stopping, is_timed_out)
        elif source.kind == "network" and source.name.startswith("rtsp"):
            connection = RtspRelay(source.address, settings.connect_s, settings.quiet_s)
        else:
            connection = None
        wait = (settings.connect_s, settings.quiet_s)
        if isinstance(connection, Pipe):
            options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
            container = av.open(connection, "r", options=options, metadata_errors="replace")
        elif isinstance(connection, RtspRelay):
            options = {"format_whitelist": "rtsp", "protocol_whitelist": "tcp"}
            options["rtsp_transport"] = "tcp"
            container = av.open(
                connection.url, "r", options=options, timeout=wait, metadata_errors="replace"
            )
        elif source.kind == "camera":
            options = {"protocol_whitelist": "file"}
            container = av.open(
                source.address, "r", format=_CAMERA_FORMATS, options=options, timeout=wait
            )
        else:
            hosts = AllowedHosts(urlsplit(source.address).hostname or "")
            container = open_http(source.address, hosts, settings.connect_s, settings.quiet_s)
        return container, connection
    except (av.FFmpegError, OSError, ValueError) as error:
        if connection is not None:
            connection.close()
        raise SourceUnreachable(_reason(source, error, connection)) from None


def _reason(source: LiveSource, error: Exception, connection: SourceConnection | None) -> str:
    """Explain in one line what failed and what to do, without the address."""
    if isinstance(error, HostForbidden):
        return f"{source.label}: not followed: {error}"
    if isinstance(connection, RtspRelay) and connection.redirected:
        return f"{source.label}: not followed: {REDIRECTED}"
    if isinstance(error, HTTPError):
        described = f"Server returned {error.code}"
    else:
        described = getattr(error, "strerror", None) or str(error) or type(error).__name__
    unauthorized = isinstance(error, HTTPError) and error.code == HTTPStatus.UNAUTHORIZED
    if unauthorized or isinstance(error, av.error.HTTPUnauthorizedError | PermissionError):
        return f"{source.label}: access is refused ({described}): check the name and password"
    if isinstance(error, av.error.InvalidDataError):
        return f"{source.label}: sends neither video nor audio that can be read ({described})"
    check = {
        "network": "check the address, and that the source is on",
        "camera": "check that the camera is plugged in and no other program uses it",
        "pipe": "check what writes into it",
    }
    return f"{source.label}: cannot be reached ({described}): {check[source.kind]}"
