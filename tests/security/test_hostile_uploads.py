"""Files that are given to the app, or lie where the API may add them from, and mean no good."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import _TemporaryFileWrapper
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette.starlette_routes import create_upload_routes

from api.routes.videos import OutsideFolder, allowed_file, reject_url
from domain.errors import HomerError, InputError, MediaError, NotFound
from flows.uploads import delete_uploads, safe_name, store_upload, uploaded_files
from memory.subtitles import read_source_texts
from perception.source import find_media, probe, probe_source
from store.home import Home
from tests.support.full_suite import in_full
from tests.support.media import make_video
from tests.support.misleading_servers import ELSEWHERE, site
from tests.support.streams import segment
from ui.application import UploadLimits

NAMES = [
    "../../../outside.mp4", "/etc/outside.mp4", "..\\..\\outside.mp4", "C:\\outside.mp4", "..", ".",
    "\0outside.mp4", "outside\0.mp4", "a" * 5_000 + ".mp4", "講" * 5_000, "", " ", ".mp4", ".part",
    "\u202egpj.exe\u202d.mp4", "a\u2066b\u2069.mp4", "a\nb\r\x1b[2J.mp4", "\ud800.mp4", "CON",
    "nul.mp4", "-rf", "--help.mp4", "~root.mp4", "$(touch outside).mp4", "%2e%2e%2foutside.mp4",
    "concat:a|b",
    "http://127.0.0.1/x.mp4", "file:///etc/passwd", "data:,x", "a.mp4/../../outside",
    "e\u0301" * 300,
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "deep" / "home").make()


def every(home: Home) -> list[Path]:
    return sorted(home.uploads.rglob("*")) if home.uploads.exists() else []


@pytest.mark.parametrize("name", ["clip.html", "a.b.svg", "clip.mp4.xhtml", "clip.php", "clip.js"])
def test_only_suffixes_of_media_are_kept(place: Home, name: str) -> None:
    kept = store_upload(place, name, b"film").name
    assert kept == name.replace(".", " ") == safe_name(kept)
    assert safe_name("a.b.MP4") == "a.b.MP4"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_chooses_no_place_and_steers_nothing(place: Home, tmp_path: Path, name: str) -> None:
    before = {path for path in tmp_path.rglob("*") if place.uploads not in path.parents}
    path = store_upload(place, name, b"film")
    assert path.parent.parent == place.uploads
    assert path.read_bytes() == b"film"
    assert path.name.isprintable()
    assert path.name == safe_name(path.name)
    assert not path.name.startswith(".")
    assert find_media([path]) == [path]
    after = {path for path in tmp_path.rglob("*") if place.uploads not in path.parents}
    assert after - before <= {place.uploads}
    assert delete_uploads(place, path.parent.name) == [path]
    assert every(place) == []


def test_the_same_file_from_many_at_once_is_one_whole_file(place: Home) -> None:
    data = os.urandom(3_000_000)
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _n: store_upload(place, "a.mp4", data), range(40)))
    (path,) = paths
    assert path.read_bytes() == data
    assert [one for one in every(place) if one.is_file()] == [path]


def test_the_same_name_with_other_content_takes_no_other_place(place: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda n: store_upload(place, "a.mp4", b"film %d" % n), range(8)))
    assert len(set(paths)) == 8
    assert [path.read_bytes() for path in paths] == [b"film %d" % n for n in range(8)]


def test_what_lies_there_under_a_name_is_not_taken_for_upload(place: Home, tmp_path: Path) -> None:
    """A link, or other content, that somebody put where the upload will be."""
    own = tmp_path / "own.mp4"
    own.write_bytes(b"mine")
    path = store_upload(place, "a.mp4", b"film")
    for put in (lambda: path.symlink_to(own), lambda: path.write_bytes(b"half")):
        path.unlink()
        put()
        assert store_upload(place, "a.mp4", b"film").read_bytes() == b"film"
        assert not path.is_symlink()
    assert own.read_bytes() == b"mine"


def test_a_folder_that_leads_elsewhere_is_not_written_into(place: Home, tmp_path: Path) -> None:
    path = store_upload(place, "a.mp4", b"film")
    path.unlink()
    path.parent.rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.parent.symlink_to(elsewhere)
    with pytest.raises(InputError, match="leads elsewhere"):
        store_upload(place, "a.mp4", b"film")
    assert list(elsewhere.iterdir()) == []


def test_nothing_is_stored_of_an_empty_file(place: Home) -> None:
    with pytest.raises(InputError, match="empty"):
        store_upload(place, "a.mp4", b"")
    assert every(place) == []


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_an_upload_that_breaks_off_leaves_nothing(place: Home, failure: BaseException) -> None:
    def half(file: Any, data: bytes) -> int:
        file.file.write(data[:2])
        raise failure

    output: type[BaseException] = InputError if isinstance(failure, OSError) else type(failure)
    with (
        patch.object(_TemporaryFileWrapper, "write", half, create=True),
        pytest.raises(output) as seen,
    ):
        store_upload(place, "a.mp4", b"film")
    assert isinstance(seen.value, KeyboardInterrupt) or "No space left" in str(seen.value)
    assert [one for one in every(place) if one.is_file()] == []
    assert uploaded_files(place, "0" * 16) == []


def test_nobody_fills_the_memory_by_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.application.VIEWER_UPLOADS_MB", 1)
    monkeypatch.setattr("ui.application.UPLOADS_MB", 2)
    monkeypatch.setattr("streamlit.web.server.starlette.starlette_routes.is_xsrf_enabled", bool)
    files = MemoryUploadedFileManager("")
    runtime: Any = SimpleNamespace(is_active_session=lambda _session: True)
    routes = Starlette(routes=create_upload_routes(runtime, files, None))
    user_of = lambda cookies: cookies["who"]  # noqa: E731
    client = TestClient(UploadLimits(routes, lambda: files, user_of, lambda who: who == "owner"))

    def upload(who: str, session: str, name: str, **content: Any) -> int:
        client.cookies = {"who": who}
        sent = content or {"files": {"file": b"x" * 700_000}}
        return client.put(f"/_stcore/upload_file/{session}/{name}", **sent).status_code

    assert upload("ann", "s1", "a") == 204
    assert upload("ann", "s1", "b") == 413
    assert upload("ann", "s2", "c") == 413, "another session is the same user's"
    assert upload("bob", "s3", "d") == 204
    assert upload("ann", "s4", "e", content=iter([b"x"])) == 411
    assert [upload("owner", "s5", name) for name in "fgh"] == [204, 204, 413]
    files.remove_session_files("s1")
    assert upload("ann", "s2", "c") == 204


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_video(tmp_path_factory.mktemp("other") / "secret.mp4", seconds=1.0)


WRITTEN = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{way}\n#EXT-X-ENDLIST\n",
    "ffconcat": "ffconcat version 1.0\nfile '{way}'\n",
    "concat": "file '{way}'\n" * 3,
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.2\ns=x\nc=IN IP4 127.0.0.2\nt=0 0\n"
    "m=video {port} RTP/AVP 33\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
    'mediaPresentationDuration="PT2S"><Period><AdaptationSet><Representation id="1" bandwidth="1" '
    'mimeType="video/mp4"><BaseURL>{way}</BaseURL></Representation></AdaptationSet></Period></MPD>',
    "xspf": '<?xml version="1.0"?><playlist><trackList><track><location>{way}</location></track>'
    "</trackList></playlist>",
    "pls": "[playlist]\nFile1={way}\nNumberOfEntries=1\n",
    "asx": '<asx version="3.0"><entry><ref href="{way}"/></entry></asx>',
    "reference": "[Reference]\nRef1={way}\n",
    "smil": '<smil><body><video src="{way}"/></body></smil>',
    "svg": '<svg xmlns="http://www.w3.org/2000/svg"><image href="{way}"/></svg>',
    "srt": "1\n00:00:00,000 --> 00:00:01,000\n{way}\n",
    "vapoursynth": "import os\nopen('{way}')\n",
    "avisynth": 'DirectShowSource("{way}")\n',
    "ansi": "\x1b[2J{way}\n",
    "rtsp": "rtsptext\n{way}\n",
    "imf": '<?xml version="1.0"?><CompositionPlaylist xmlns="http://www.smpte-ra.org/schemas/2067-3/2016">'
    "<Id>{way}</Id></CompositionPlaylist>",
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["mp4", *map(in_full, ("m3u8", "ts", "txt"))])
@pytest.mark.parametrize("kind", WRITTEN)
def test_list_called_video_is_closed(place: Home, recording: Path, kind: str, suffix: str) -> None:
    with site(lambda _path: recording.read_bytes(), ELSEWHERE) as other:
        for way in (
            str(recording),
            f"file://{recording}",
            f"{other.url}/x.mp4",
            f"concat:{recording}",
        ):
            data = WRITTEN[kind].format(way=way, port=other.port).encode()
            path = store_upload(place, f"list.{suffix}", data)
            with pytest.raises(MediaError, match="not a video"):
                probe(path)
    assert other.asked == []


def test_list_in_a_stream_opens_nothing_else(place: Home, recording: Path, tmp_path: Path) -> None:
    """Real media with a playlist before or behind it is media, or is refused; no more."""
    stream = segment(tmp_path, "film", 1.0)
    with site(lambda _path: recording.read_bytes(), ELSEWHERE) as other:
        output = WRITTEN["hls"].format(way=f"{other.url}/x.ts").encode()
        for number, data in enumerate((output + stream, stream + output)):
            path = store_upload(place, f"{number}.ts", data)
            try:
                assert probe(path).duration_ms < 1_500
            except MediaError:
                continue
    assert other.asked == []


def test_words_beside_an_upload_are_not_another_files(place: Home, recording: Path) -> None:
    """Subtitles are looked for by name in the folder of a file: uploads share none."""
    path = store_upload(place, "talk.mp4", recording.read_bytes())
    store_upload(place, "talk.srt", WRITTEN["srt"].format(way="planted").encode())
    assert read_source_texts(path, probe_source(path)).names == ()


@pytest.mark.parametrize(
    "given",
    ["../secret.mp4", "/etc/passwd", "in/../../secret.mp4", "link.mp4", "linked/secret.mp4", "loop",
     "", ".", "..", "a\0b", "\ud800", "x" * 5_000, "~/secret.mp4", "in/./../../secret.mp4",
     "//etc/passwd"],
)  # fmt: skip
def test_path_reaches_nothing_outside_folders_that_are_allowed(tmp_path: Path, given: str) -> None:
    folder = tmp_path / "videos"
    (folder / "in").mkdir(parents=True)
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    (folder / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    with pytest.raises((OutsideFolder, NotFound)):
        allowed_file([folder], given)


@pytest.mark.parametrize(
    "given",
    ["http://127.0.0.1/x", " file:///etc/passwd", "RTSP://x", "concat:/etc/passwd", "data:/x"],
)
def test_an_address_is_no_path(given: str) -> None:
    with pytest.raises(HomerError):
        reject_url(given)
