"""Addresses that a schedule fetches and that lead elsewhere, or to more than anybody wanted.

The user names 127.0.0.1; 127.0.0.2 is another private host, which nothing may lead to.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.schedules import fetching
from flows.schedules.fetching import FetchResult, video_fetcher
from perception.allowed_hosts import AllowedHosts, HostForbidden, connections_limited_to
from tests.support.media import make_video
from tests.support.misleading_servers import (
    ELSEWHERE,
    HERE,
    Answer,
    Endless,
    Moved,
    Site,
    forget_known_hosts,
    site,
)

pytest.importorskip("yt_dlp")

FEED = '<?xml version="1.0"?><rss version="2.0"><channel><title>f</title>{}</channel></rss>'
ITEM = '<item><title>t</title><link>{0}</link><enclosure url="{0}"/></item>'
PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n{}#EXT-X-ENDLIST\n"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_known_hosts(monkeypatch)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_video(tmp_path_factory.mktemp("film") / "f.mp4", seconds=1.0).read_bytes()


@pytest.fixture
def private(recording: bytes) -> Iterator[Site]:
    with site(lambda _path: recording, ELSEWHERE) as found:
        yield found


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., FetchResult]:
    folder = tmp_path / "fetched"
    folder.mkdir()

    def get(url: str, most: int = 10) -> FetchResult:
        return video_fetcher()(url, folder, most, None, None)

    return get


def feed(*links: str) -> bytes:
    return FEED.format("".join(ITEM.format(link) for link in links)).encode()


def files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "fetched").rglob("*"))


def kinds(path: str) -> dict[str, str]:
    return {"Content-Type": "application/vnd.apple.mpegurl"} if path.endswith("m3u8") else {}


@pytest.mark.parametrize(
    "page",
    [
        lambda to: Moved(f"{to}/secret.mp4"),
        lambda to: feed(f"{to}/secret.mp4"),
        lambda to: PLAYLIST.format(f"#EXTINF:2,\n{to}/secret.ts\n").encode(),
        lambda to: PLAYLIST.format(
            f'#EXT-X-KEY:METHOD=AES-128,URI="{to}/secret"\n#EXTINF:2,\nown.ts\n'
        ).encode(),
        lambda to: f'<html><title>t</title><video src="{to}/secret.mp4"></video></html>'.encode(),
        lambda to: f'<meta http-equiv="refresh" content="0;url={to}/secret.html">'.encode() * 2,
    ],
)
def test_nothing_leads_to_another_private_host(
    private: Site, fetch: Callable[..., FetchResult], page: Callable[[str], Answer]
) -> None:
    def answer(path: str) -> Answer:
        return b"x" * 188 if "own" in path else page(private.url)

    with site(answer, headers=kinds) as s:
        for name in ("x.m3u8", "x.html"):
            assert fetch(f"{s.url}/{name}").files == ()
    assert private.asked == []


@pytest.mark.parametrize("link", ["http://[x/a.mp4", "http://ann:secret@[x]/a.mp4"])
def test_an_address_that_is_none_fails_alone(
    fetch: Callable[..., FetchResult], recording: bytes, link: str
) -> None:
    with site(lambda path: feed(link, f"{s.url}/b.mp4") if "xml" in path else recording) as s:
        result = fetch(f"{s.url}/feed.xml")
    assert [file.read_bytes() for file in result.files] == [recording]
    assert len(result.faults) == 1
    assert "secret" not in result.faults[0]


@pytest.mark.parametrize("way", ["file://{0}", "FILE://{0}", "file:{0}", "{0}", "concat:{0}"])
def test_no_file_of_this_machine_is_fetched(
    fetch: Callable[..., FetchResult], tmp_path: Path, recording: bytes, way: str
) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(recording)
    to = way.format(secret)
    answers: dict[str, Answer] = {
        "/feed.xml": feed(to),
        "/moved.mp4": Moved(to),
        "/page.html": f'<html><title>t</title><video src="{to}"></video></html>'.encode(),
        "/list.m3u8": PLAYLIST.format(f"#EXTINF:2,\n{to}\n").encode(),
    }
    with site(lambda path: answers.get(path, 404), headers=kinds) as s:
        for name in answers:
            assert fetch(f"{s.url}{name}").files == ()
    assert not any(
        len(recording) == path.stat().st_size for path in (tmp_path / "fetched").iterdir()
    )


@pytest.mark.parametrize(
    "title",
    ["../../evil", "/etc/evil", "..\\..\\evil", "%2e%2e%2f%2e%2e%2fevil", "evil\0", "a" * 300],
)
def test_a_title_chooses_no_place(
    fetch: Callable[..., FetchResult], tmp_path: Path, recording: bytes, title: str
) -> None:
    page = (
        f'<html><title>{title}</title><video src="/own/..%2f..%2f{title[:9]}.mp4"></video></html>'
    )
    with site(lambda path: recording if "own" in path else page.encode()) as named:
        got = fetch(f"{named.url}/page.html").files
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")} == {"fetched"}
    assert [path.parent for path in got] == [tmp_path / "fetched"]


def test_a_video_without_end_is_given_up_and_nothing_of_it_stays(
    fetch: Callable[..., FetchResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recording: bytes,
) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 3_000_000)
    with site(lambda _path: Endless(recording, bytes(100_000))) as named:
        found = fetch(f"{named.url}/endless.mp4")
    assert found.files == ()
    assert "larger than" in found.faults[0]
    assert files(tmp_path) == []


def test_a_page_without_end_is_given_up(
    fetch: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_PAGE", 1_000_000)
    with site(lambda _path: Endless(b"<html><title>t</title>", b"<p>words</p>" * 1000)) as named:
        found = fetch(f"{named.url}/page.html")
    assert "longer than" in found.faults[0]


def test_lists_of_lists_without_end_are_given_up(fetch: Callable[..., FetchResult]) -> None:
    with site(lambda _path: b"") as named:
        count = 0

        def answer(_path: str) -> bytes:
            nonlocal count
            count += 1
            return feed(*(f"{endless.url}/{count}-{n}.xml" for n in range(9)))

        with site(answer) as endless:
            found = fetch(f"{endless.url}/feed.xml", 2)
    assert named.asked == []
    assert len(endless.asked) < 400
    assert any("without end" in fault for fault in found.faults)


def test_lists_give_as_many_as_asked(fetch: Callable[..., FetchResult], recording: bytes) -> None:
    def answer(path: str) -> bytes:
        return feed(*(f"{s.url}/{n}.mp4" for n in range(2000))) if "feed" in path else recording

    with site(answer) as s:
        found = fetch(f"{s.url}/feed.xml", 3)
    assert len(found.files) == 3
    assert found.faults == ()
    assert len(set(s.asked)) == 4


def test_what_takes_too_long_is_given_up(
    fetch: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch, recording: bytes
) -> None:
    monkeypatch.setattr(fetching, "LONGEST_S", -1.0)
    with site(lambda _path: recording) as named:
        found = fetch(f"{named.url}/x.mp4")
    assert found.files == ()
    assert "longer than" in found.faults[0]
    assert named.asked == []


def test_no_other_program_is_started(
    fetch: Callable[..., FetchResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A playlist that is live, or locked in a way that yt-dlp cannot open, went to FFmpeg."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ffmpeg", "ffprobe", "aria2c", "mplayer", "mpv", "rtmpdump", "curl", "wget"):
        ran = f"#!/bin/sh\necho $0 $@ >> {tmp_path}/ran\necho ffmpeg version 6\n"
        (tools / name).write_text(ran)
        (tools / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    live = PLAYLIST.replace("#EXT-X-ENDLIST\n", "").format("#EXTINF:2,\na.ts\n")
    locked = PLAYLIST.format('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"\n#EXTINF:2,\na.ts\n')
    page = '<html><title>t</title><video src="rtsp://127.0.0.2/x"></video></html>'
    answers = {"/live.m3u8": live, "/locked.m3u8": locked, "/page.html": page}

    def answer(path: str) -> Answer:
        return answers[path].encode() if path in answers else 404

    with site(answer, headers=kinds) as named:
        for name in answers:
            assert fetch(f"{named.url}{name}").files == ()
    assert not (tmp_path / "ran").exists()


def test_a_library_keeps_to_what_was_named(monkeypatch: pytest.MonkeyPatch, private: Site) -> None:
    """Also where a name that was checked has another address by the time it is connected to."""
    with connections_limited_to(AllowedHosts(HERE)):
        for place in ((ELSEWHERE, private.port), ("localhost", private.port)):
            with socket.socket() as one, pytest.raises(HostForbidden):
                one.connect(place)
        with socket.socket() as one, pytest.raises(ConnectionRefusedError):
            one.connect((HERE, 9))
    with socket.create_connection((ELSEWHERE, private.port)):
        pass
