"""Reads live sources over HTTP: one stream, or an HLS playlist with its segments.

FFmpeg follows redirects and playlists to any host. So every address is opened here instead, where
its host is checked (``perception.allowed_hosts``), and FFmpeg is given what came of it.
"""

from __future__ import annotations

import io
import re
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import (
    HTTPBasicAuthHandler,
    HTTPCookieProcessor,
    HTTPDefaultErrorHandler,
    HTTPDigestAuthHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPPasswordMgrWithDefaultRealm,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import av
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from models.keys_and_packages import without_login
from perception.allowed_hosts import AllowedHosts, HostForbidden
from perception.containers import FORMATS

if TYPE_CHECKING:
    from av.container import InputContainer

MAX_PLAYLIST_BYTES = 16 << 20
"""Bytes of a playlist: a day of segments with long addresses."""
MAX_STREAMS = 100
"""Streams that a playlist may offer: each is asked for before anything is shown."""
CHUNK = 1 << 16

SendRequest: TypeAlias = Callable[[str, int, int | None], HTTPResponse]
"""Requests ``(url, start, end)``: a byte range, half-open; ``end`` None is the end of the file."""
_HLS_MAGIC = b"#EXTM3U"
_STREAM_TAGS = re.compile(rb"^#EXT-X-(STREAM-INF|MEDIA|I-FRAME-STREAM-INF):", re.MULTILINE)
_URI = re.compile(r'(?<![A-Z0-9-])URI="([^"]*)"')
_SAFE_CHARACTERS = "%/:=&?~#+!$,;'@()*[]"
"""Signs of an address that are not escaped."""
_BLOCK = 16
_NO_PROTOCOL = "none"
"""FFmpeg itself may open nothing: a name that no protocol has."""


class ReadableSource(Protocol):
    """The file interface that FFmpeg reads."""

    def read(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes; empty at the end."""

    def close(self) -> None:
        """Close the source."""


def open_http(url: str, allowed: AllowedHosts, connect_s: float, read_s: float) -> InputContainer:
    """Open an http or https address as media.

    Args:
        url: the address; a name and password in it are for its host only.
        connect_s: seconds until it is open.
        read_s: seconds in which something must come.

    Raises:
        HostForbidden: it leads to where it may not.
        OSError: it does not answer.
        av.FFmpegError: it sends no media.
    """
    source = _HttpOpener(url, allowed, connect_s, read_s)
    opened = source.open(source.url)
    timeouts = (connect_s, read_s)
    options = {"protocol_whitelist": _NO_PROTOCOL, "format_whitelist": f"{FORMATS},mpjpeg"}
    try:
        if not isinstance(opened, io.BytesIO):
            return av.open(
                opened, "r", options=options, timeout=timeouts, metadata_errors="replace"
            )
        options |= {"format_whitelist": f"{FORMATS},hls"}
        options |= {"http_persistent": "0", "http_multiple": "0"}
        return av.open(
            source.url,
            "r",
            format="hls",
            options=options,
            timeout=timeouts,
            metadata_errors="replace",
            io_open=partial(source.open_nested, {source.url: opened}),
        )
    finally:
        source.finish_opening()


def request_file(
    url: str, allowed: AllowedHosts, answer_s: float, start: int = 0, validator: str = ""
) -> HTTPResponse:
    """Request a file, or its rest.

    Args:
        url: an http or https address; a name and password in it are for its host only.
        answer_s: seconds within which something must come.
        start: the first byte.
        validator: the file's ``ETag`` or ``Last-Modified`` as it was. A changed file comes whole.

    Raises:
        HostForbidden: it leads to where it may not.
        OSError: it does not answer.
    """
    opener = _HttpOpener(url, allowed, answer_s, answer_s)
    opener.finish_opening()
    return opener.send(opener.url, start, None, validator)


class _HttpOpener:
    """Opens the addresses of one source."""

    def __init__(self, url: str, allowed: AllowedHosts, connect_s: float, read_s: float) -> None:
        parts = urlsplit(url)
        self.url = without_login(url)
        # Build the HTTP opener, with the usual handlers but checked connections.
        passwords = HTTPPasswordMgrWithDefaultRealm()
        if parts.username is not None:
            host = parts.netloc.rpartition("@")[2]
            user, secret = unquote(parts.username), unquote(parts.password or "")
            passwords.add_password(None, f"{parts.scheme}://{host}/", user, secret)
        opener = OpenerDirector()
        for handler in (
            ProxyHandler(),
            _CheckedHttpHandler(allowed),
            _CheckedHttpsHandler(allowed),
            HTTPBasicAuthHandler(passwords),
            HTTPDigestAuthHandler(passwords),
            HTTPCookieProcessor(),
            _RedirectHandler(),
            HTTPDefaultErrorHandler(),
            HTTPErrorProcessor(),
        ):
            opener.add_handler(handler)
        self._opener = opener
        self._connect_s, self._read_s = connect_s, read_s
        self._deadline: float | None = time.monotonic() + connect_s

    def finish_opening(self) -> None:
        """Lift the deadline of opening; from now on each read is limited to ``read_s``."""
        self._deadline = None

    def open(self, url: str, start: int = 0, end: int | None = None) -> ReadableSource:
        """Open the bytes of an address; a playlist is read completely.

        Raises:
            HostForbidden: it leads to where it may not.
            OSError: it cannot be had.
        """
        remote = HttpSource(self.send, url, start, end)
        head = remote.peek(len(_HLS_MAGIC))
        if head != _HLS_MAGIC:
            return remote
        with closing(remote):
            deadline = time.monotonic() + self._read_s
            data = bytearray()
            while chunk := remote.read(CHUNK):
                data += chunk
                if len(data) > MAX_PLAYLIST_BYTES:
                    raise HostForbidden("its playlist has no end")
                if time.monotonic() > deadline:
                    raise TimeoutError("its playlist takes too long")
            return io.BytesIO(resolve_playlist(remote.url, bytes(data), nested=url != self.url))

    def send(self, url: str, start: int, end: int | None, validator: str = "") -> HTTPResponse:
        """Request bytes of an address; with a ``validator``, all of a file that has changed.

        Raises:
            HostForbidden: it leads to where it may not.
            OSError: it does not answer.
        """
        if not re.match(r"https?://", url, re.IGNORECASE):
            raise HostForbidden("it names an address that is neither http nor https")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise TimeoutError("it takes too long to open")
        last = "" if end is None else end - 1
        headers = {"User-Agent": "Homer", "Accept": "*/*", "Range": f"bytes={start}-{last}"}
        if validator:
            headers["If-Range"] = validator
        try:
            timeout = self._read_s if self._deadline is None else self._connect_s
            response = self._opener.open(
                _Request(quote(url, _SAFE_CHARACTERS), headers=headers), None, timeout
            )
        except HTTPError:
            raise
        except URLError as error:
            raise error.reason if isinstance(error.reason, OSError) else error from None
        except (HTTPException, ValueError) as error:
            raise OSError(f"no answer that can be read ({type(error).__name__})") from None
        if not isinstance(response, HTTPResponse):
            raise OSError("no answer over HTTP")
        return response

    def open_nested(
        self, opened: dict[str, ReadableSource], url: str, _flags: int, options: Mapping[str, str]
    ) -> ReadableSource:
        """Open what FFmpeg asks for: a playlist, a segment, a key. Empty if it cannot be read.

        Raises:
            HostForbidden: it may not be had.
        """
        if url in opened:
            return opened.pop(url)
        crypto, _, address = url.partition("+") if url.startswith("crypto+") else ("", "", url)
        try:
            # The byte range of a segment in a file of several; end None is the end of the file.
            begin, end = int(options.get("offset", "0")), int(options.get("end_offset", "0"))
            segment = TolerantReader(self.open(address, begin, end or None))
            return DecryptingReader(segment, options["key"], options["iv"]) if crypto else segment
        except HostForbidden:
            raise
        except (OSError, ValueError, KeyError):
            return io.BytesIO()


class HttpSource:
    """A response as a file, seekable where the server supports byte ranges."""

    name = ""
    """FFmpeg looks at a file's name; an address may hold keys."""

    def __init__(self, send: SendRequest, url: str, start: int, end: int | None) -> None:
        self._send, self._end, self._position = send, end, start
        self._response = send(url, start, end)
        self.url = self._response.url
        # The size of the whole file in bytes; None without byte ranges.
        stated = self._response.headers.get("Content-Range", "")
        sized = re.fullmatch(r"bytes 0-\d+/(\d+)", stated)
        whole = end is None and self._response.status == 206
        self._size = int(sized[1]) if whole and sized else None
        self._peeked = b""
        if start and self._response.status != 206:
            self.close()
            raise OSError("the server does not give parts of a file")

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them."""
        while len(self._peeked) < size and (received := self._receive(size - len(self._peeked))):
            self._peeked += received
        return self._peeked

    def read(self, size: int = CHUNK, /) -> bytes:
        """Read at most ``size`` bytes, as soon as there are any; empty at the end.

        Raises:
            OSError: the connection broke.
        """
        data, self._peeked = self._peeked[:size], self._peeked[size:]
        data = data or self._receive(size)
        self._position += len(data)
        return data

    def _receive(self, size: int) -> bytes:
        try:
            return self._response.read1(size)
        except (HTTPException, ValueError) as error:
            raise OSError(f"the connection broke ({type(error).__name__})") from None

    def seekable(self) -> bool:
        """Tell whether the file can be sought in."""
        return self._size is not None

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to another position; the connection is made anew.

        Raises:
            OSError: it cannot be sought in, or the connection broke.
        """
        size = self._size
        if size is None:
            raise OSError("it cannot be sought in")
        target = offset + (0, self._position, size)[whence]
        if target == self._position:
            return target
        self._response.close()
        if target < size:
            self._response = self._send(self.url, target, None)
            if self._response.status != 206:
                raise OSError("the server gives no parts any more")
        self._position, self._peeked = target, b""
        return target

    def close(self) -> None:
        self._response.close()


class TolerantReader:
    """A segment that ends where its connection breaks, so that the next one is read."""

    def __init__(self, inner: ReadableSource) -> None:
        self._inner = inner

    def read(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes; empty at the end."""
        try:
            return self._inner.read(size)
        except HostForbidden:
            raise
        except OSError:
            return b""

    def close(self) -> None:
        self._inner.close()


class DecryptingReader:
    """Decrypts a segment in AES-128-CBC, as in HLS, and strips its padding."""

    def __init__(self, inner: ReadableSource, key: str, iv: str) -> None:
        cipher = Cipher(algorithms.AES(bytes.fromhex(key)), modes.CBC(bytes.fromhex(iv)))
        self._inner, self._cipher = inner, cipher.decryptor()
        self._last_block = b""
        """The last block, which may be padded."""
        self._ready = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes; empty at the end."""
        while not self._ready and not self._ended:
            chunk = self._inner.read(CHUNK)
            self._ended = not chunk
            decrypted = self._last_block + self._cipher.update(chunk)
            self._ready = decrypted[:-_BLOCK]
            if self._ended:
                padding = decrypted[-1] if decrypted else 0
                self._ready = decrypted[:-padding] if 0 < padding <= _BLOCK else decrypted
            self._last_block = decrypted[-_BLOCK:]
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def close(self) -> None:
        self._inner.close()


def resolve_playlist(base: str, data: bytes, *, nested: bool) -> bytes:
    """Make the addresses of a playlist absolute.

    Args:
        base: where it was found, after redirects.
        nested: another playlist named it, so that it may name segments only.

    Raises:
        HostForbidden: it is too long, or offers too many streams.
    """
    max_streams = 0 if nested else MAX_STREAMS
    if sum(1 for _ in _STREAM_TAGS.finditer(data)) > max_streams:
        raise HostForbidden("its playlist offers too many streams")
    lines, size = [], 0
    for line in data.decode("utf-8", "replace").splitlines():
        lines.append(_resolve_line(base, line))
        size += len(lines[-1])
        if size > MAX_PLAYLIST_BYTES:
            raise HostForbidden("its playlist has no end")
    return "\n".join([*lines, ""]).encode()


def _resolve_line(base: str, line: str) -> str:
    try:
        if line.startswith("#"):
            return _URI.sub(lambda found: f'URI="{urljoin(base, found[1])}"', line)
        return urljoin(base, line.strip()) if line.strip() else ""
    except ValueError:  # No address at all.
        return "#"


class _Request(Request):
    """A request that knows whether it goes to a proxy."""

    proxied = False

    def set_proxy(self, host: str, type: str) -> None:  # noqa: A002 - as it is called there
        super().set_proxy(host, type)
        self.proxied = True


class _RedirectHandler(HTTPRedirectHandler):
    """Follows redirects with requests of the same class."""

    def redirect_request(self, *args: Any) -> Request | None:
        redirected = super().redirect_request(*args)
        return redirected and _Request(redirected.full_url, headers=redirected.headers)


class _CheckedHttpHandler(HTTPHandler):
    """Connects to allowed hosts only; a proxy of the user connects by itself."""

    def __init__(self, allowed: AllowedHosts) -> None:
        super().__init__()
        self._allowed = allowed

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_connection_factory(self._allowed, req, HTTPConnection), req)


class _CheckedHttpsHandler(HTTPSHandler):
    """The same with TLS. A private host may have a self-signed certificate: cameras do."""

    def __init__(self, allowed: AllowedHosts) -> None:
        super().__init__()
        self._allowed = allowed

    def https_open(self, req: Request) -> HTTPResponse:
        context = ssl.create_default_context()
        if self._allowed.is_private(urlsplit(req.full_url).hostname or ""):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return self.do_open(
            _connection_factory(self._allowed, req, HTTPSConnection), req, context=context
        )


def _connection_factory(
    allowed: AllowedHosts, req: Request, kind: type[HTTPConnection]
) -> Callable[..., HTTPConnection]:
    """Return what makes a request's connection, to an allowed host only."""
    if getattr(req, "proxied", False):
        allowed.check(unquote(urlsplit(req.full_url).hostname or ""))
        return kind

    def connect(host: str, **options: Any) -> HTTPConnection:
        connection = kind(host, **options)
        connection._create_connection = allowed.connect  # type: ignore[attr-defined]
        return connection

    return connect
