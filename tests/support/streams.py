"""Live sources on this machine: pipes that are fed, an HLS server, an RTSP server, a clock."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event, Thread
from typing import Any

from domain.media import StreamSettings
from domain.settings import MemorySettings, Settings, WatchSettings
from domain.time import TimeSpan
from perception.live import LiveSource, live_source
from perception.live_clips import CapturedClip, ClipBuffer
from perception.live_reader import LiveReader, StreamPosition, open_source
from tests.support.local_servers import serving
from tests.support.media import Recipe, make_video

SMALL = Settings(
    watch=WatchSettings(clip_ms=2_000, sample_fps=2.0, keyframes=1),
    memory=MemorySettings(),
    stream=StreamSettings(gap_ms=500, waiting=50, connect_s=1, quiet_s=5),
)
"""Clips of two seconds, of which none need wait."""
BEGAN_MS = 1_700_000_000_000
_TS = 188


class Hands:
    """A clock that only waiting moves. ``then``: what happens when somebody has waited."""

    def __init__(self, then: Callable[[], None] = lambda: None, seconds: float = 0) -> None:
        self.ms = BEGAN_MS + int(seconds * 1000)
        self.waits: list[float] = []
        self.then = then

    def now_ms(self) -> int:
        return self.ms

    def wait(self, seconds: float, stop: Event) -> None:
        del stop
        self.ms += int(seconds * 1000)
        self.waits.append(seconds)
        self.then()


def segment(folder: Path, name: str, seconds: float = 2.0, **recipe: Any) -> bytes:
    """An MPEG transport stream of so many seconds, 10 frames in each."""
    made = Recipe(seconds=seconds, fps=10, gop=10, size=(64, 48))
    return make_video(folder / f"{name}.ts", made, **recipe).read_bytes()


def collected(source: LiveSource, **options: Any) -> tuple[list[CapturedClip], LiveReader]:
    """All that comes of a source, until it ends."""
    settings = options.pop("settings", SMALL)
    place = options.pop("place", StreamPosition(BEGAN_MS))
    clock, stop = options.pop("clock", None) or Hands(), options.pop("stop", None) or Event()
    buffer = options.pop("buffer", ClipBuffer(settings.stream.waiting))
    follower = LiveReader(source, settings, place, buffer, clock, stop, **options)
    follower.run(open_source(source, settings, stop.is_set))
    if follower.error is not None:
        raise follower.error
    found = []
    while (clip := buffer.get(wait=False)) is not None:
        found.append(clip)
    return found, follower


def spans(clips: Sequence[CapturedClip]) -> list[tuple[int, int]]:
    """When each clip is, in tenths of a second: sound begins some milliseconds off."""
    return [tenths(clip.raw.clip.span) for clip in clips]


def tenths(span: TimeSpan) -> tuple[int, int]:
    return round(span.start_ms / 100), round(span.end_ms / 100)


def told_gaps(clips: Sequence[CapturedClip]) -> list[tuple[int, int, str]]:
    """The gaps that came with clips, in tenths of a second, with their reasons."""
    gaps = [gap for clip in clips for gap in clip.gaps]
    return [(*tenths(gap.span), gap.reason.name) for gap in gaps]


@contextmanager
def fifo(path: Path, until: Event | None = None) -> Iterator[Callable[[bytes], None]]:
    """A FIFO, and what writes bytes into it from beside: opened, written and closed again.

    With ``until`` it is closed only when that is set.
    """
    os.mkfifo(path)
    threads: list[Thread] = []

    def feed(data: bytes) -> None:
        threads.append(Thread(target=_write, args=(path, data, until), daemon=True))
        threads[-1].start()

    yield feed
    for thread in threads:
        thread.join(5)


def _write(path: Path, data: bytes, until: Event | None) -> None:
    with suppress(BrokenPipeError), path.open("wb") as file:
        file.write(data)
        file.flush()
        if until is not None:
            until.wait(30)


class Fed:
    """A FIFO that is fed one piece at each try to connect again; after the last all is over.

    ``away_s``: how long its writer is away each time; ``stays``: it never goes away.
    """

    def __init__(
        self, path: Path, pieces: Sequence[bytes], away_s: float = 0, *, stays: bool = False
    ) -> None:
        self.path, self.pieces, self.away_s, self.stays = path, list(pieces), away_s, stays
        self.stop = Event()
        self.clock = Hands(self._again)

    def collect(self, **options: Any) -> tuple[list[CapturedClip], LiveReader]:
        with self.feeding() as source:
            return collected(source, clock=self.clock, stop=self.stop, **options)

    @contextmanager
    def feeding(self) -> Iterator[LiveSource]:
        """The source, with its first piece on the way."""
        with fifo(self.path, self.stop if self.stays else None) as self._feed:
            self._feed(self.pieces.pop(0))
            yield live_source(str(self.path))

    def _again(self) -> None:
        self.clock.ms += int(self.away_s * 1000)
        if self.pieces:
            self._feed(self.pieces.pop(0))
        else:
            self.stop.set()


@contextmanager
def served(answer: Callable[[str], bytes | int]) -> Iterator[str]:
    """An HTTP server that answers paths with bytes, or with a status; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answer(self.path)
            self.send_response(found if isinstance(found, int) else 200)
            data = b"" if isinstance(found, int) else found
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    with serving(Handler) as port:
        yield f"127.0.0.1:{port}"


def playlist(names: Sequence[str], seconds: float = 2.0, *, first: int = 0, end: bool) -> bytes:
    """An HLS playlist; without its end it is live."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:3", f"#EXT-X-TARGETDURATION:{int(seconds)}"]
    lines.append(f"#EXT-X-MEDIA-SEQUENCE:{first}")
    for name in names:
        lines += [f"#EXTINF:{seconds:.3f},", name]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if end else []), ""]).encode()


class Camera:
    """An RTSP server for one client at a time: each PLAY sends the next transport stream.

    When that is sent the connection is dropped, as by a camera that is switched off. ``seen`` are
    the first lines of what clients asked.
    """

    def __init__(self, streams: Sequence[bytes]) -> None:
        self._streams = list(streams)
        self.seen: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._serve, daemon=True).start()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def close(self) -> None:
        """Nobody can connect any more."""
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                with client, suppress(OSError, ValueError):
                    self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        file = client.makefile("rb")
        while True:
            first, number = self._asked(file)
            if not first:
                return
            self.seen.append(first)
            verb = first.split()[0]
            head, body = self._reply(verb)
            output = [f"RTSP/1.0 200 OK\r\nCSeq: {number}", *head, f"Content-Length: {len(body)}"]
            client.sendall(("\r\n".join(output) + "\r\n\r\n" + body).encode())
            if verb == "PLAY":
                for packet in _rtp(self._streams.pop(0)):
                    client.sendall(packet)
                if not self._streams:
                    self.close()
                return

    @staticmethod
    def _asked(file: Any) -> tuple[str, str]:
        lines = []
        while (line := file.readline().decode().strip()) != "":
            lines.append(line)
        number = next((ln.split(":")[1].strip() for ln in lines if ln.startswith("CSeq")), "0")
        return (lines[0] if lines else ""), number

    @staticmethod
    def _reply(verb: str) -> tuple[list[str], str]:
        if verb == "DESCRIBE":
            sdp = (
                "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=door\r\nt=0 0\r\n"
                "m=video 0 RTP/AVP 33\r\na=control:track1\r\n"
            )
            return ["Content-Type: application/sdp"], sdp
        if verb == "SETUP":
            return ["Transport: RTP/AVP/TCP;unicast;interleaved=0-1", "Session: 12345"], ""
        return ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN", "Session: 12345"], ""


def _rtp(data: bytes) -> Iterator[bytes]:
    """A transport stream as RTP (payload 33), interleaved into the RTSP connection."""
    for number, at in enumerate(range(0, len(data), 7 * _TS)):
        payload = data[at : at + 7 * _TS]
        head = struct.pack("!BBHII", 0x80, 33, number & 0xFFFF, number * 90, 7)
        yield struct.pack("!cBH", b"$", 0, len(head) + len(payload)) + head + payload
