"""Live sources over HTTP: one stream, or an HLS playlist with its segments.

FFmpeg follows redirects and playlists to any host. So every address is opened here instead, where
its host is checked (``perception.allowed_hosts``), and FFmpeg is given what came of it.
"""

from __future__ import annotations

import io
import re
import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit
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

from perception.allowed_hosts import Forbidden, Reach
from perception.containers import FORMATS

if TYPE_CHECKING:
    from av.container import InputContainer

MOST_PLAYLIST = 16 << 20
"""Bytes of a playlist: a day of segments with long addresses."""
MOST_STREAMS = 100
"""Streams that a playlist may offer: each is asked for before anything is shown."""
CHUNK = 1 << 16

_Ask: TypeAlias = Callable[[str, int, int | None], HTTPResponse]
_MARK = b"#EXTM3U"
_STREAMS = re.compile(rb"^#EXT-X-(STREAM-INF|MEDIA|I-FRAME-STREAM-INF):", re.MULTILINE)
_URI = re.compile(r'(?<![A-Z0-9-])URI="([^"]*)"')
_AS_IT_IS = "%/:=&?~#+!$,;'@()*[]"
"""Signs of an address that are not escaped."""
_BLOCK = 16
_NO_PROTOCOL = "none"
"""FFmpeg itself may open nothing: a name that no protocol has."""


class Readable(Protocol):
    """What FFmpeg reads."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""

    def close(self) -> None:
        """Let go of it."""


def open_http(url: str, reach: Reach, connect_s: float, quiet_s: float) -> InputContainer:
    """Open what lies at an http or https address as media.

    Args:
        url: the address; a name and password in it are for its host only.
        reach: where it may lead to.
        connect_s: seconds until it is open.
        quiet_s: seconds in which something must come.

    Raises:
        Forbidden: it leads to where it may not.
        OSError: it does not answer.
        av.FFmpegError: it sends no media.
    """
    source = _Source(url, reach, connect_s, quiet_s)
    first = source.open(source.url)
    wait = (connect_s, quiet_s)
    options = {"protocol_whitelist": _NO_PROTOCOL, "format_whitelist": f"{FORMATS},mpjpeg"}
    try:
        if not isinstance(first, io.BytesIO):
            return av.open(first, "r", options=options, timeout=wait, metadata_errors="replace")
        options |= {"format_whitelist": f"{FORMATS},hls"}
        options |= {"http_persistent": "0", "http_multiple": "0"}
        return av.open(
            source.url,
            "r",
            format="hls",
            options=options,
            timeout=wait,
            metadata_errors="replace",
            io_open=partial(source.nested, {source.url: first}),
        )
    finally:
        source.opened()


class _Source:
    """Opens addresses for one source."""

    def __init__(self, url: str, reach: Reach, connect_s: float, quiet_s: float) -> None:
        parts = urlsplit(url)
        self.url = _plain(parts)
        self._opener = _opener(parts, reach)
        self._connect_s, self._quiet_s = connect_s, quiet_s
        self._until: float | None = time.monotonic() + connect_s

    def opened(self) -> None:
        """From now on it may take as long as it does, each piece within ``quiet_s``."""
        self._until = None

    def open(self, url: str, start: int = 0, end: int | None = None) -> Readable:
        """The bytes of an address, or its playlist as a whole.

        Raises:
            Forbidden: it leads to where it may not.
            OSError: it cannot be had.
        """
        remote = HttpSource(self._ask, url, start, end)
        head = remote.peek(len(_MARK))
        if head != _MARK:
            return remote
        with remote:
            return io.BytesIO(playlist_at(remote.url, self._whole(remote), nested=url != self.url))

    def _ask(self, url: str, start: int, end: int | None) -> HTTPResponse:
        if not re.match(r"https?://", url, re.IGNORECASE):
            raise Forbidden("it names an address that is neither http nor https")
        if self._until is not None and time.monotonic() > self._until:
            raise TimeoutError("it takes too long to open")
        last = "" if end is None else end - 1
        headers = {"User-Agent": "Homer", "Accept": "*/*", "Range": f"bytes={start}-{last}"}
        try:
            limit = self._quiet_s if self._until is None else self._connect_s
            found = self._opener.open(_Request(quote(url, _AS_IT_IS), headers=headers), None, limit)
        except HTTPError:
            raise
        except URLError as error:
            raise error.reason if isinstance(error.reason, OSError) else error from None
        except (HTTPException, ValueError) as error:
            raise OSError(f"no answer that can be read ({type(error).__name__})") from None
        if not isinstance(found, HTTPResponse):
            raise OSError("no answer over HTTP")
        return found

    def _whole(self, remote: HttpSource) -> bytes:
        until = time.monotonic() + self._quiet_s
        data = bytearray()
        while piece := remote.read(CHUNK):
            data += piece
            if len(data) > MOST_PLAYLIST:
                raise Forbidden("its playlist has no end")
            if time.monotonic() > until:
                raise TimeoutError("its playlist takes too long")
        return bytes(data)

    def nested(
        self, held: dict[str, Readable], url: str, _flags: int, options: Mapping[str, str]
    ) -> Readable:
        """What FFmpeg asks for: a playlist, a segment, a key. What cannot be had is empty.

        Raises:
            Forbidden: it may not be had.
        """
        if url in held:
            return held.pop(url)
        crypto, _, rest = url.partition("+") if url.startswith("crypto+") else ("", "", url)
        try:
            quiet = Lenient(self.open(rest, *_part_of(options)))
            return Decrypted(quiet, options["key"], options["iv"]) if crypto else quiet
        except Forbidden:
            raise
        except (OSError, ValueError, KeyError):
            return io.BytesIO()


def _part_of(options: Mapping[str, str]) -> tuple[int, int | None]:
    """The bytes that are asked for of a file that holds several segments."""
    end = int(options.get("end_offset", "0"))
    return int(options.get("offset", "0")), end or None


def _plain(parts: SplitResult) -> str:
    """An address without name and password."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


class HttpSource:
    """What lies at an address, as a file; it can be sought in where the server gives parts."""

    name = ""
    """FFmpeg looks at a file's name; an address may hold keys."""

    def __init__(
        self,
        ask: Callable[[str, int, int | None], HTTPResponse],
        url: str,
        start: int,
        end: int | None,
    ) -> None:
        self._ask, self._end, self._at = ask, end, start
        self._response = ask(url, start, end)
        self.url = self._response.url
        self._size = _size(self._response) if end is None else None
        self._ahead = b""
        if start and self._response.status != 206:
            self.close()
            raise OSError("the server does not give parts of a file")

    def __enter__(self) -> HttpSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def peek(self, size: int) -> bytes:
        """The next bytes, which are still to be read."""
        while len(self._ahead) < size and (more := self._more(size - len(self._ahead))):
            self._ahead += more
        return self._ahead

    def read(self, size: int = CHUNK, /) -> bytes:
        """What has come, at most ``size`` bytes; none at the end.

        Raises:
            OSError: the connection broke.
        """
        found, self._ahead = self._ahead[:size], self._ahead[size:]
        found = found or self._more(size)
        self._at += len(found)
        return found

    def _more(self, size: int) -> bytes:
        try:
            return self._response.read1(size)
        except (HTTPException, ValueError) as error:
            raise OSError(f"the connection broke ({type(error).__name__})") from None

    def seekable(self) -> bool:
        """Whether it can be sought in."""
        return self._size is not None

    def tell(self) -> int:
        """Bytes from the start."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go on from another byte; the connection is made anew.

        Raises:
            OSError: it cannot be sought in, or the connection broke.
        """
        size = self._size
        if size is None:
            raise OSError("it cannot be sought in")
        to = offset + (0, self._at, size)[whence]
        if to == self._at:
            return to
        self._response.close()
        if to < size:
            self._response = self._ask(self.url, to, None)
            if self._response.status != 206:
                raise OSError("the server gives no parts any more")
        self._at, self._ahead = to, b""
        return to

    def close(self) -> None:
        """Let go of the connection."""
        self._response.close()


def _size(response: HTTPResponse) -> int | None:
    """Bytes of the whole file; None where parts of it cannot be asked for."""
    found = re.fullmatch(r"bytes 0-\d+/(\d+)", response.headers.get("Content-Range", ""))
    return int(found[1]) if response.status == 206 and found else None


class Lenient:
    """A segment that ends where it breaks off: the next one is read then."""

    def __init__(self, inner: Readable) -> None:
        self._inner = inner

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        try:
            return self._inner.read(size)
        except Forbidden:
            raise
        except OSError:
            return b""

    def close(self) -> None:
        """Let go of it."""
        self._inner.close()


class Decrypted:
    """A segment in AES-128-CBC, as HLS has them; the padding at its end is left out."""

    def __init__(self, inner: Readable, key: str, iv: str) -> None:
        cipher = Cipher(algorithms.AES(bytes.fromhex(key)), modes.CBC(bytes.fromhex(iv)))
        self._inner, self._cipher = inner, cipher.decryptor()
        self._held = b""
        """The last block, which may be padded."""
        self._ready = b""
        self._over = False

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        while not self._ready and not self._over:
            piece = self._inner.read(CHUNK)
            self._over = not piece
            clear = self._held + self._cipher.update(piece)
            self._ready = _unpadded(clear) if self._over else clear[:-_BLOCK]
            self._held = clear[-_BLOCK:]
        found, self._ready = self._ready[:size], self._ready[size:]
        return found

    def close(self) -> None:
        """Let go of it."""
        self._inner.close()


def _unpadded(block: bytes) -> bytes:
    count = block[-1] if block else 0
    return block[:-count] if 0 < count <= _BLOCK else block


def playlist_at(base: str, data: bytes, *, nested: bool) -> bytes:
    """A playlist whose addresses are whole, so that they mean the same wherever it is read.

    Args:
        base: where it was found, after redirects.
        data: what was found there.
        nested: another playlist named it, so that it may name segments only.

    Raises:
        Forbidden: it is too long, or offers too many streams.
    """
    most = 0 if nested else MOST_STREAMS
    if sum(1 for _ in _STREAMS.finditer(data)) > most:
        raise Forbidden("its playlist offers too many streams")
    lines, size = [], 0
    for line in data.decode("utf-8", "replace").splitlines():
        lines.append(_whole_line(base, line))
        size += len(lines[-1])
        if size > MOST_PLAYLIST:
            raise Forbidden("its playlist has no end")
    return "\n".join([*lines, ""]).encode()


def _whole_line(base: str, line: str) -> str:
    try:
        if line.startswith("#"):
            return _URI.sub(lambda found: f'URI="{urljoin(base, found[1])}"', line)
        return urljoin(base, line.strip()) if line.strip() else ""
    except ValueError:  # No address at all.
        return "#"


def _opener(parts: SplitResult, reach: Reach) -> OpenerDirector:
    """What opens addresses over HTTP, with the usual handlers but for the way to connect."""
    passwords = HTTPPasswordMgrWithDefaultRealm()
    if parts.username is not None:
        host = parts.netloc.rpartition("@")[2]
        user, secret = unquote(parts.username), unquote(parts.password or "")
        passwords.add_password(None, f"{parts.scheme}://{host}/", user, secret)
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(),
        _Http(reach),
        _Https(reach),
        HTTPBasicAuthHandler(passwords),
        HTTPDigestAuthHandler(passwords),
        HTTPCookieProcessor(),
        _Redirects(),
        HTTPDefaultErrorHandler(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class _Request(Request):
    """Knows whether a proxy takes it."""

    proxied = False

    def set_proxy(self, host: str, type: str) -> None:  # noqa: A002 - as it is called there
        super().set_proxy(host, type)
        self.proxied = True


class _Redirects(HTTPRedirectHandler):
    """Follows redirects by requests of the same kind."""

    def redirect_request(self, *args: Any) -> Request | None:
        made = super().redirect_request(*args)
        return made and _Request(made.full_url, headers=made.headers)


class _Http(HTTPHandler):
    """Connects to hosts that may be reached; a proxy of the user's connects by itself."""

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_way(self._reach, req, HTTPConnection), req)


class _Https(HTTPSHandler):
    """The same with TLS. A private host may have a certificate of its own making: cameras do."""

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._reach = reach

    def https_open(self, req: Request) -> HTTPResponse:
        context = ssl.create_default_context()
        if self._reach.is_private(urlsplit(req.full_url).hostname or ""):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return self.do_open(_way(self._reach, req, HTTPSConnection), req, context=context)


def _way(reach: Reach, req: Request, kind: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
    """What makes a connection for a request, and no other than to a host that may be reached."""
    if getattr(req, "proxied", False):
        reach.check(unquote(urlsplit(req.full_url).hostname or ""))
        return kind

    def made(host: str, **options: Any) -> HTTPConnection:
        connection = kind(host, **options)
        connection._create_connection = reach.connect  # type: ignore[attr-defined]
        return connection

    return made
