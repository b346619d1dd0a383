"""A live source that leads elsewhere: to this machine, its network, its files, or nowhere at all.

The user names 127.0.0.1, a private address, which is allowed. 127.0.0.2 stands for another private
host: nothing may be asked there.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from perception import allowed_hosts, http_source
from perception.allowed_hosts import AllowedHosts, HostForbidden, is_public
from perception.http_source import resolve_playlist
from perception.live import SourceUnreachable, live_source
from perception.live_reader import OpenSource, open_source
from tests.support.media import make_video
from tests.support.misleading_servers import (
    ELSEWHERE,
    HERE,
    Answer,
    Endless,
    Moved,
    Site,
    Talker,
    forget_known_hosts,
    site,
)
from tests.support.streams import SMALL, collected, playlist, segment, spans

ANY = ": "
"""Of a message: whatever the reason."""
REDIRECT = (
    b"RTSP/1.0 302 Moved\r\nCSeq: NUMBER\r\nLocation: rtsp://%s/x\r\nContent-Length: 0\r\n\r\n"
)
FINE = b"RTSP/1.0 200 OK\r\nCSeq: NUMBER\r\nPublic: DESCRIBE, SETUP, PLAY\r\n"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return segment(tmp_path_factory.mktemp("astray"), "two", 2.0)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine's, and no memory of names of an earlier test."""
    forget_known_hosts(monkeypatch)


@pytest.fixture
def private(two: bytes) -> Iterator[Site]:
    """A host of the network that nobody named, with something to see."""
    with site(lambda _path: two, ELSEWHERE) as found:
        yield found


def opened(address: str) -> OpenSource:
    return open_source(live_source(address), SMALL, lambda: False)


def refused(address: str, why: str = "not followed") -> str:
    with pytest.raises(SourceUnreachable, match=why) as found:
        opened(address).close()
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_private_host_is_not_followed(private: Site, status: int) -> None:
    with site(lambda _path: Moved(f"{private.url}/secret.ts", status)) as named:
        output = refused(f"{named.url}/live.ts", "private address.*name that address yourself")
    assert private.asked == []
    assert "secret" not in output


@pytest.mark.parametrize(
    "to",
    ["http://169.254.169.254/latest", "http://10.0.0.1/x", "http://[::1]/x", "http://0.0.0.0/x",
     "http://[::ffff:169.254.169.254]/x", "http://2130706434/x", "http://0x7f.2/x",
     "http://%31%32%37.0.0.2/x", "http://metadata.internal/x", "ftp://127.0.0.1/x",
     "file:///etc/passwd", "http://127.0.0.1:x/y", "http:///x", "gopher://127.0.0.1:1/x"],
)  # fmt: skip
def test_no_spelling_of_an_address_leads_there(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[object] = []
    real = socket.create_connection

    def connecting(place: tuple[str, int], *more: object) -> socket.socket:
        went.append(place[0])
        return real(place, 1.0)

    monkeypatch.setattr(socket, "create_connection", connecting)
    with site(lambda _path: Moved(to)) as named:
        refused(f"{named.url}/live.ts", ANY)
    assert set(went) == {HERE}


def lines(*more: str) -> bytes:
    return "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:2", *more, "#EXT-X-ENDLIST", ""]).encode()


@pytest.mark.parametrize(
    "output",
    [
        ("#EXTINF:2,", "{url}/secret.ts"),
        ("#EXT-X-STREAM-INF:BANDWIDTH=1", "{url}/secret.m3u8"),
        ("#EXT-X-KEY:METHOD=AES-128,URI=\"{url}/secret\"", "#EXTINF:2,", "own.ts"),
        ("#EXT-X-MAP:URI=\"{url}/secret.mp4\"", "#EXTINF:2,", "own.ts"),
        ('#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="{url}/secret.m3u8"',
         '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"', "own.m3u8"),
        ("#EXTINF:2,", "moved.ts"),
    ],
)  # fmt: skip
def test_a_playlist_may_not_lead_to_another_private_host(
    private: Site, two: bytes, output: tuple[str, ...]
) -> None:
    def answer(path: str) -> Answer:
        match path:
            case "/live.m3u8":
                return lines(*(line.format(url=private.url) for line in output))
            case "/own.m3u8":
                return lines("#EXTINF:2,", "own.ts")
            case "/moved.ts":
                return Moved(f"{private.url}/secret.ts")
        return two

    with site(answer) as named:
        refused(f"{named.url}/live.m3u8", "private address")
    assert private.asked == []


@pytest.mark.parametrize(
    "way",
    ["file://{path}", "file:{path}", "{path}", "concat:{path}|{path}", "crypto+file://{path}",
     "crypto:{path}", "data:video/mp2t;base64,AAAA", "tcp://127.0.0.2:{port}", "pipe:0",
     "subfile,,start,0,end,0,,:{path}", "cache:file:{path}", "async:file:{path}", "ftp://127.0.0.2",
     "udp://127.0.0.2:{port}", "rtsp://127.0.0.2:{port}/x", "crypto+http://127.0.0.2:{port}/x",
     "\x01file://{path}", "FILE://{path}", "//127.0.0.2:{port}/x"],
)  # fmt: skip
def test_a_playlist_names_no_file_and_no_other_protocol(
    private: Site, tmp_path: Path, two: bytes, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.ts").write_bytes(two)
    monkeypatch.chdir(tmp_path)
    segment_at = way.format(path=tmp_path / "secret.ts", port=private.port)
    with site(lambda path: lines("#EXTINF:2,", segment_at) if "m3u8" in path else 404) as named:
        refused(f"{named.url}/live.m3u8", ANY)
    assert private.asked == []


def test_a_description_of_a_session_over_http_opens_no_socket() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind((ELSEWHERE, 0))
    listening.settimeout(0.2)
    output = (
        f"v=0\r\no=- 0 0 IN IP4 {ELSEWHERE}\r\ns=x\r\nc=IN IP4 {ELSEWHERE}\r\nt=0 0\r\n"
        f"m=video {listening.getsockname()[1]} RTP/AVP 33\r\n"
    )
    kind = {"Content-Type": "application/sdp"}
    with site(lambda _path: output.encode(), headers=lambda _path: kind) as named:
        refused(f"{named.url}/live.sdp", ANY)
    with pytest.raises(TimeoutError):
        listening.recv(100)


def test_a_playlist_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_source, "MAX_PLAYLIST_BYTES", 1 << 20)
    endless = Endless(b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n", b"#EXTINF:2,\na.ts\n" * 500)
    with site(lambda _path: endless) as named:
        refused(f"{named.url}/live.m3u8", "no end")


def test_playlists_that_name_playlists_without_end_are_given_up() -> None:
    count = 0

    def answer(_path: str) -> bytes:
        nonlocal count
        count += 1
        return f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{count}.m3u8\n".encode()

    began = time.monotonic()
    with site(answer) as named:
        refused(f"{named.url}/live.m3u8", "too many streams")
    assert count <= 3
    assert time.monotonic() - began < 5


def test_a_playlist_does_not_grow_by_whole_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_source, "MAX_PLAYLIST_BYTES", 1 << 20)
    with pytest.raises(HostForbidden, match="no end"):
        resolve_playlist(
            "http://h/" + "a" * 10_000 + "/x", b"#EXTM3U\n" + b"b\n" * 1000, nested=True
        )
    many = b"#EXTM3U\n" + b"#EXT-X-STREAM-INF:BANDWIDTH=1\nx\n" * 101
    with pytest.raises(HostForbidden, match="too many"):
        resolve_playlist("http://h/", many, nested=False)


def test_redirects_in_a_circle_end() -> None:
    with site(lambda path: Moved(f"{path}a")) as named:
        refused(f"{named.url}/a", ANY)
    assert len(named.asked) < 20


def test_a_server_that_drips_is_given_up() -> None:
    many = lines(*(f"#EXT-X-STREAM-INF:BANDWIDTH={n}\n{n}.m3u8" for n in range(50)))

    def answer(path: str) -> Answer:
        time.sleep(0.4)
        return many if path == "/live.m3u8" else lines("#EXTINF:2,", "no.ts")

    began = time.monotonic()
    with site(answer) as named:
        refused(f"{named.url}/live.m3u8", ANY)
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("before", [b"", FINE + b"\r\n"])
def test_an_rtsp_redirect_is_not_followed(before: bytes) -> None:
    private = Talker(FINE + b"\r\n", host=ELSEWHERE)
    camera = Talker(*filter(None, [before, REDIRECT % private.place.encode()]))
    refused(f"rtsp://{camera.place}/live", "redirects.*name that address yourself")
    assert private.heard == b""
    camera.close()
    private.close()


@pytest.mark.parametrize(
    "hidden",
    [
        FINE + b"Content-Length: 0\r\nContent-Length: MORE\r\n\r\n",
        FINE + b"Content-Length : MORE\r\n\r\n",
        FINE + b"Con\rtent-Length: MORE\r\n\r\n",
        FINE + b"\x00\r\nContent-Length: MORE\r\n\r\n",
        FINE + b"X: $\r\n$abc\r\nContent-Length: MORE\r\n\r\n",
    ],
)
def test_no_redirect_is_smuggled_in_by_another_reading_of_lengths(hidden: bytes) -> None:
    private = Talker(FINE + b"\r\n", host=ELSEWHERE)
    moved = (REDIRECT % private.place.encode()).replace(b"NUMBER", b"1")
    camera = Talker(hidden.replace(b"MORE", b"%d" % len(moved)) + moved)
    refused(f"rtsp://{camera.place}/live", ANY)
    assert private.heard == b""
    camera.close()
    private.close()


class Names:
    """A name server whose answers change: each name has its addresses in turn, the last stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **known: list[list[str]]) -> None:
        self._known, self._real = known, socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._find)
        monkeypatch.setattr(allowed_hosts, "is_public", lambda ip: ip == HERE)

    def _find(self, host: str, port: int | None, *more: object, **options: object) -> object:
        turns = self._known.get(str(host).partition(".")[0])
        if turns is None:
            return self._real(host, port, *more, **options)  # type: ignore[arg-type]
        found = turns.pop(0) if len(turns) > 1 else turns[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port or 0)) for one in found]


def test_a_name_turned_private_is_ignored(monkeypatch: pytest.MonkeyPatch, private: Site) -> None:
    Names(monkeypatch, evil=[[HERE]] * 2 + [[ELSEWHERE]])
    with site(lambda _path: lines("#EXTINF:2,", f"http://evil.test:{private.port}/x.ts")) as named:
        refused(f"http://evil.test:{named.port}/live.m3u8", "private address")
        refused(f"http://evil.test:{private.port}/live.m3u8", "private address")
    assert private.asked == []


def test_names_half_private_are_public(monkeypatch: pytest.MonkeyPatch, private: Site) -> None:
    Names(monkeypatch, evil=[[ELSEWHERE, HERE]])
    refused(f"http://evil.test:{private.port}/live.m3u8", "refused|reached")
    assert private.asked == []


def test_no_public_source_leads_inside(monkeypatch: pytest.MonkeyPatch, private: Site) -> None:
    Names(monkeypatch, cdn=[[HERE]], local=[[ELSEWHERE]])
    with site(lambda _path: Moved(f"http://local.test:{private.port}/x")) as named:
        refused(f"http://cdn.test:{named.port}/x", "private address")
    assert private.asked == []


def test_a_proxy_is_asked_for_nothing_private(monkeypatch: pytest.MonkeyPatch, two: bytes) -> None:
    def answer(path: str) -> Answer:
        return Moved("http://%31%30.0.0.1/secret") if "secret" not in path else two

    with site(answer) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        refused("http://cdn.invalid/live.ts", "private address")
    assert proxy.asked == ["http://cdn.invalid/live.ts"]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1",
     "0.0.0.0", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fc00::1",
     "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::",
     "fec0::1", "::7f00:1", "::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "64:ff9b:1::808:808"],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


# What must still be watched.


def test_a_redirect_on_the_same_host_is_followed_and_its_segments_are_found(two: bytes) -> None:
    def answer(path: str) -> Answer:
        match path:
            case "/live.m3u8":
                return Moved("/deep/er/list.m3u8")
            case "/deep/er/list.m3u8":
                return playlist(["0.ts", "../1.ts"], end=True)
            case "/deep/er/0.ts" | "/deep/1.ts":
                return two
        return 404

    with site(answer) as named:
        clips, _ = collected(live_source(f"{named.url}/live.m3u8"))
    assert sum(clip.tally.came for clip in clips) == 40


def test_public_sources_lead_to_public_ones(monkeypatch: pytest.MonkeyPatch, private: Site) -> None:
    monkeypatch.setattr(allowed_hosts, "is_public", lambda ip: ip in (HERE, ELSEWHERE))
    with site(lambda _path: lines("#EXTINF:2,", f"{private.url}/x.ts")) as named:
        opened(f"{named.url}/live.m3u8").close()
    assert "/x.ts" in private.asked


def test_encrypted_segments_and_parts_of_a_file_are_watched(two: bytes) -> None:
    key, iv = os.urandom(16), bytes(16)
    pad = 16 - len(two) % 16
    locked = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor().update(two + bytes([pad]) * pad)
    half = len(two) // 188 // 2 * 188
    output = {
        "/locked.m3u8": lines(f'#EXT-X-KEY:METHOD=AES-128,URI="key",IV=0x{iv.hex()}',
                              "#EXTINF:2,", "locked.ts"),
        "/parts.m3u8": lines(f"#EXT-X-BYTERANGE:{half}@0", "#EXTINF:1,", "two.ts",
                             f"#EXT-X-BYTERANGE:{len(two) - half}@{half}", "#EXTINF:1,", "two.ts"),
        "/key": key, "/locked.ts": locked, "/two.ts": two,
    }  # fmt: skip
    with site(lambda path: output[path], parts=True) as named:
        for name in ("locked", "parts"):
            clips, _ = collected(live_source(f"{named.url}/{name}.m3u8"))
            assert sum(clip.tally.came for clip in clips) == 20, name
            assert [clip.tally.damaged for clip in clips] == [0] * len(clips)


def test_a_file_over_http_is_sought_in(tmp_path: Path) -> None:
    recording = make_video(tmp_path / "film.mp4", seconds=4.0, fps=10).read_bytes()
    with site(lambda _path: recording, parts=True) as named:
        connection = opened(f"{named.url}/film.mp4")
        assert connection.finite
        connection.close()
        clips, _ = collected(live_source(f"{named.url}/film.mp4"))
    assert spans(clips)[0] == (0, 20)


@pytest.mark.parametrize("way", ["Basic", "Digest"])
def test_a_name_and_password_are_given_where_they_are_asked_for(two: bytes, way: str) -> None:
    asks = {
        "Basic": 'Basic realm="cam"',
        "Digest": 'Digest realm="cam", nonce="abc", qop="auth", algorithm=MD5',
    }
    turns = iter([401])

    def answer(_path: str) -> Answer:
        return next(turns, two)

    with site(answer, headers=lambda _: {"WWW-Authenticate": asks[way]}) as named:
        opened(f"http://me:hunter2@{named.host}:{named.port}/live.ts").close()
    assert len(named.asked) == 2


def test_a_missing_segment_is_passed_over(two: bytes) -> None:
    def answer(path: str) -> Answer:
        if "m3u8" in path:
            return playlist(["0.ts", "1.ts", "2.ts"], end=True)
        return 404 if path == "/1.ts" else two

    with site(answer) as named:
        clips, _ = collected(live_source(f"{named.url}/live.m3u8"))
    assert sum(clip.tally.came for clip in clips) == 40


def test_the_host_that_is_named_may_be_private() -> None:
    with site(lambda _path: b"x") as named:
        AllowedHosts("localhost").connect(("localhost", named.port), 2.0).close()
        with pytest.raises(HostForbidden):
            AllowedHosts("8.8.8.8").connect((HERE, named.port), 2.0)
