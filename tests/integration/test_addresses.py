"""Videos at addresses: fetched whole, continued where a connection broke, refused with a reason."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.errors import InputError, SetupError
from flows import addresses
from flows.addresses import HttpFile, delete_parts, fetch_address, fetched_files
from flows.jobs import Jobs
from flows.removal import delete_unwatched_uploads
from library.params import read_lines
from models.keys_and_packages import redacted_url, secrets_of_url
from models.toolbox import Toolbox
from store.database import Store
from store.files import file_lock
from store.home import Home
from tests.support.local_servers import serving
from tests.support.media import make_video
from tests.support.misleading_servers import (
    ELSEWHERE,
    HERE,
    Endless,
    Moved,
    forget_known_hosts,
    site,
)

MP4 = {"Content-Type": "video/mp4", "ETag": '"1"'}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_known_hosts(monkeypatch)
    monkeypatch.setattr(addresses, "WAIT_S", 0.0)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_video(tmp_path_factory.mktemp("film") / "f.mp4", seconds=1.0).read_bytes()


@dataclass
class Breaking:
    """A server that breaks its first connections. ``starts``: the first bytes asked for."""

    data: bytes
    breaks: int
    url: str = ""
    etag: str = '"1"'
    starts: list[int] = field(default_factory=list)

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """Send the rest of the file, or a third of it."""
        start = int(to.headers["Range"].removeprefix("bytes=").partition("-")[0])
        if to.headers.get("If-Range", self.etag) != self.etag:
            start = 0
        self.starts.append(start)
        to.send_response(206 if start else 200)
        if start:
            to.send_header("Content-Range", f"bytes {start}-{len(self.data) - 1}/{len(self.data)}")
        to.send_header("Content-Type", "video/mp4")
        to.send_header("ETag", self.etag)
        to.send_header("Content-Length", str(len(self.data) - start))
        to.end_headers()
        rest = self.data[start:]
        broken = len(self.starts) <= self.breaks
        to.wfile.write(rest[: len(rest) // 3] if broken else rest)
        to.close_connection = True


@pytest.fixture
def breaking(recording: bytes) -> Iterator[Callable[[int], Breaking]]:
    server = Breaking(recording, 0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.answer(self)

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    def breaks(times: int) -> Breaking:
        server.breaks = times
        return server

    with serving(Handler) as port:
        server.url = f"http://{HERE}:{port}/a/talk%20one.mp4"
        yield breaks


def reason(home: Home, url: str, **options: Any) -> str:
    fetched = fetch_address(home, url, **options)
    assert fetched.files == ()
    assert fetched.error is not None
    return str(fetched.error)


def test_file_is_fetched_among_the_uploads_under_its_own_name(home: Home, recording: bytes) -> None:
    with site(lambda _path: recording, headers=lambda _path: MP4) as s:
        (file,) = fetch_address(home, f"{s.url}/a/talk%20one.mp4?key=1").files
        assert (file.name, file.read_bytes()) == ("talk one.mp4", recording)
        assert file.parent.parent == home.uploads
        # What is there is not fetched again.
        assert fetch_address(home, f"{s.url}/a/talk%20one.mp4?key=1").files == (file,)
        assert len(s.asked) == 1


def test_a_broken_connection_is_continued_at_its_byte(
    home: Home, breaking: Callable[[int], Breaking], recording: bytes
) -> None:
    server = breaking(2)
    (file,) = fetch_address(home, server.url).files
    assert file.read_bytes() == recording
    assert server.starts[0] == 0 < server.starts[1] < server.starts[2]


def test_the_next_run_continues_what_an_earlier_one_left(
    home: Home, breaking: Callable[[int], Breaking], recording: bytes
) -> None:
    server = breaking(addresses.TRIES)
    assert "the connection broke after" in reason(home, server.url)
    (file,) = fetch_address(home, server.url).files
    assert file.read_bytes() == recording
    assert server.starts[addresses.TRIES] > 0


def kept(home: Home) -> list[str]:
    return sorted(path.name for path in home.fetching.glob("*/file.*"))


def test_what_is_kept_of_a_broken_file_is_stated_and_goes_after_a_week(
    home: Home, breaking: Callable[[int], Breaking], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "TRIES", 1)
    server = breaking(1)
    assert "MB are kept for a week, and the next try continues there" in reason(home, server.url)
    assert kept(home) == ["file.json", "file.part"]
    with site(lambda _path: 404) as s:
        assert "kept" not in reason(home, f"{s.url}/another.mp4")
        assert kept(home) == ["file.json", "file.part"]
        for part in home.fetching.glob("*/file.*"):
            os.utime(part, (time.time() - 8 * 86_400,) * 2)
        reason(home, f"{s.url}/another.mp4")
    assert kept(home) == []


def test_nothing_is_kept_that_the_server_could_not_continue(
    home: Home, breaking: Callable[[int], Breaking], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "TRIES", 1)
    server = breaking(1)
    server.etag = 'W/"1"'
    assert "kept" not in reason(home, server.url)
    assert kept(home) == []


def test_what_is_kept_goes_when_it_is_given_up(
    home: Home, breaking: Callable[[int], Breaking], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "TRIES", 1)
    server = breaking(1)
    reason(home, server.url)
    with file_lock(next(home.fetching.glob("*/lock"))):
        delete_parts(home, [server.url])
        assert kept(home) == ["file.json", "file.part"]  # Another process fetches it.
    delete_parts(home, [server.url])
    assert kept(home) == []


def test_what_is_there_of_a_file_needs_no_more_room(
    home: Home,
    breaking: Callable[[int], Breaking],
    recording: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = breaking(addresses.TRIES)
    reason(home, server.url)
    too_little = SimpleNamespace(free=len(recording) - 1)
    monkeypatch.setattr("flows.addresses.shutil.disk_usage", lambda _path: too_little)
    (file,) = fetch_address(home, server.url).files
    assert file.read_bytes() == recording


def test_no_room_is_told(home: Home, recording: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    too_little = SimpleNamespace(free=len(recording) - 1)
    monkeypatch.setattr("flows.addresses.shutil.disk_usage", lambda _path: too_little)
    with site(lambda _path: recording, headers=lambda _path: MP4) as s:
        assert "GB of it are missing" in reason(home, f"{s.url}/talk.mp4")


def test_a_file_that_changed_meanwhile_is_fetched_whole(
    home: Home, breaking: Callable[[int], Breaking], recording: bytes
) -> None:
    server = breaking(addresses.TRIES)
    reason(home, server.url)
    server.data, server.etag = recording[::-1], '"2"'
    (file,) = fetch_address(home, server.url).files
    assert file.read_bytes() == recording[::-1]


def test_nothing_leads_to_another_private_host(home: Home, recording: bytes) -> None:
    with site(lambda _path: recording, ELSEWHERE) as private:
        with site(lambda _path: Moved(f"{private.url}/x.mp4")) as s:
            assert "private address" in reason(home, f"{s.url}/x.mp4")
        assert private.asked == []


def test_a_private_host_is_refused_where_not_allowed(home: Home, recording: bytes) -> None:
    with site(lambda _path: recording) as s:
        assert "private address" in reason(home, f"{s.url}/x.mp4", public_only=True)
        assert s.asked == []


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (b"{}", "application/json", "no video or audio file, but application/json"),
        (404, "video/mp4", "the server says 404"),
        (b"", "video/mp4", "the file is empty"),
    ],
)
def test_what_is_no_video_is_refused(home: Home, answer: bytes | int, kind: str, why: str) -> None:
    with site(lambda _path: answer, headers=lambda _path: {"Content-Type": kind}) as s:
        assert why in reason(home, f"{s.url}/x")
    assert ([path for path in home.uploads.rglob("*") if path.is_file()], kept(home)) == ([], [])


@pytest.mark.parametrize("endless", [True, False])
def test_a_file_beyond_the_limit_is_given_up_and_nothing_of_it_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch, recording: bytes, endless: bool
) -> None:
    monkeypatch.setattr(addresses, "MOST_BYTES", len(recording) - 1)
    answer = Endless(recording, recording) if endless else recording
    with site(lambda _path: answer, headers=lambda _path: {"Content-Type": "video/mp4"}) as s:
        assert "larger than" in reason(home, f"{s.url}/x.mp4")
    assert list(home.fetching.rglob("*.part")) == []


def test_a_failure_keeps_the_keys_of_an_address_to_itself(home: Home) -> None:
    with site(lambda _path: 403) as s:
        url = s.url.replace("://", "://me:hunter22@")
        text = reason(home, f"{url}/x.mp4?token=abcdefgh")
    assert f"{s.url}/x.mp4 cannot be fetched: the server says 403" in text
    assert "hunter22" not in text
    assert "abcdefgh" not in text


def page_site(recording: bytes) -> Any:
    html = b'<html><title>t</title><video src="/own.mp4"></video></html>'
    kinds = {"/own.mp4": MP4}
    return site(
        lambda path: recording if path == "/own.mp4" else html,
        headers=lambda path: kinds.get(path, {"Content-Type": "text/html; charset=utf-8"}),
    )


def test_the_video_of_a_page_is_fetched_by_yt_dlp(home: Home, recording: bytes) -> None:
    pytest.importorskip("yt_dlp")
    with page_site(recording) as s:
        (file,) = fetch_address(home, f"{s.url}/watch").files
    assert (file.read_bytes(), file.parent.parent) == (recording, home.uploads)


def test_pages_need_an_extra(home: Home, recording: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.keys_and_packages.find_spec", lambda _name: None)
    with page_site(recording) as s:
        fetched = fetch_address(home, f"{s.url}/watch")
    assert isinstance(fetched.error, SetupError)
    assert "it is a page (text/html)" in str(fetched.error)
    assert 'extra "fetch"' in str(fetched.error)


def test_a_page_leads_to_no_private_host_either(home: Home, recording: bytes) -> None:
    pytest.importorskip("yt_dlp")
    with site(lambda _path: recording, ELSEWHERE) as private:
        html = f'<html><title>t</title><video src="{private.url}/x.mp4"></video></html>'.encode()
        with site(lambda _path: html, headers=lambda _path: {"Content-Type": "text/html"}) as s:
            assert "cannot be fetched" in reason(home, f"{s.url}/watch")
        assert private.asked == []


def test_a_deleted_file_leaves_no_record_of_its_address(store: Store, recording: bytes) -> None:
    home = store.home
    with site(lambda _path: recording, headers=lambda _path: MP4) as s:
        url = f"{s.url}/secret talk.mp4".replace(" ", "%20")
        files = fetch_address(home, url).files
    assert fetched_files(home, url) == files
    assert delete_unwatched_uploads(store, map(str, files)) == list(files)
    left = [path.read_text() for path in home.fetching.rglob("*") if path.is_file()]
    assert not any("secret" in text for text in left)


@pytest.mark.full
def test_the_command_watches_the_others_and_says_which_address_failed(
    home: Home, database: str, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch, recording: bytes
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    monkeypatch.setenv("HOMER_WEIGHTS", str(toolbox.weights))
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    with site(lambda path: recording if "good" in path else 404, headers=lambda _path: MP4) as s:
        urls = [f"{s.url}/good.mp4", f"{s.url}/gone.mp4"]
        done = CliRunner().invoke(app, ["ingest", "--direct", "--json", *urls])
        alone = CliRunner().invoke(app, ["ingest", urls[1]])
    good, gone = json.loads(done.stdout)
    assert (good["title"], good["clips"], gone["path"]) == ("good", 1, urls[1])
    assert "404" in gone["error"]
    assert (done.exit_code, alone.exit_code) == (2, 2)
    assert "404" in alone.stderr


def test_a_stream_is_no_address_of_a_video(home: Home) -> None:
    done = CliRunner().invoke(app, ["ingest", "rtsp://door/live"])
    assert isinstance(done.exception, SystemExit)
    assert "homer watch" in done.stderr


def test_a_password_reaches_no_command_line_and_no_file(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody on the machine can list processes with their arguments."""
    note = "import json, sys; json.dump([sys.argv, sys.stdin.read()], open(sys.argv[1], 'w'))"
    noted = tmp_path / "noted"
    monkeypatch.setattr(Jobs, "command", (sys.executable, "-c", note, str(noted)))
    jobs = Jobs(home)

    def given() -> Any:
        while jobs.every()[0].running:
            time.sleep(0.05)
        return json.loads(noted.read_text())

    job = jobs.start([], urls=["http://ann:hunter22@door/talk.mp4?v=7"])
    arguments, text = given()
    assert text == "http://ann:hunter22@door/talk.mp4?v=7"
    assert not [one for one in arguments if "door" in one]
    assert not [path for path in home.run.glob("*") if "hunter22" in path.read_text()]
    jobs.go_on(job)
    assert given()[1] == "http://door/talk.mp4?v=7", "it finds what was fetched"


def test_sources_come_from_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some").write_text("http://a/b.mp4\n\n c.mp4 \n")
    monkeypatch.setattr("sys.stdin", StringIO("http://d/e.mp4"))
    named = ["x.mp4", f"@{tmp_path / 'some'}", "@-"]
    assert read_lines(named) == ("x.mp4", "http://a/b.mp4", "c.mp4", "http://d/e.mp4")
    for wrong in ("@-", f"@{tmp_path}"):
        with pytest.raises(InputError, match="address"):
            read_lines([wrong])


def test_a_message_about_what_is_no_address_hides_all_of_it() -> None:
    assert redacted_url("http://ann:secret@[x/a.mp4?key=1") == "http://..."
    assert list(secrets_of_url("http://ann:secret@[x/a.mp4")) == ["ann:secret@[x/a.mp4"]


def parts_of(data: bytes, ranges: list[str]) -> type[BaseHTTPRequestHandler]:
    """A server that says 206 to everything, with these ranges in turn."""
    left = list(ranges)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = left.pop(0) if len(left) > 1 else left[0]
            first, last = map(int, said.partition("/")[0].split("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {said}")
            for name, value in MP4.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[first : last + 1])
            self.close_connection = True

        def log_message(self, *_args: Any) -> None:
            """Says nothing."""

    return Handler


def test_a_part_that_was_not_asked_for_is_not_taken_as_the_beginning(home: Home) -> None:
    data = bytes(range(200))
    # Twice the second half would have the size of the file.
    with serving(parts_of(data, ["100-199/200"])) as port:
        assert "another part" in reason(home, f"http://{HERE}:{port}/a.mp4")
    assert list(home.fetching.rglob("*.part")) == []


def test_a_full_disk_is_not_left_full(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: HttpFile, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(HttpFile, "_check", full)
    with site(lambda _path: b"x" * 1000, headers=lambda _path: MP4) as s:
        assert "No space left" in reason(home, f"{s.url}/a.mp4")
        assert len(s.asked) == 1
    assert list(home.fetching.rglob("*.part")) == []


def test_a_file_is_whole_only_with_all_bytes_said_first(home: Home, recording: bytes) -> None:
    size = len(recording)
    # The first answer breaks off; the second says no size, and less than is missing comes.
    with serving(parts_of(recording, [f"0-99/{size}", "100-199/*", f"200-{size - 1}/*"])) as port:
        (file,) = fetch_address(home, f"http://{HERE}:{port}/a.mp4").files
    assert file.read_bytes() == recording


@pytest.mark.parametrize(
    ("stated", "kept"),
    [("filename*=a\0b''x.mp4", "talk.mp4"), ('filename="clip.html"', "clip html.mp4")],
    ids=["in no known encoding", "of a page"],
)
def test_stated_name_is_only_a_videos(home: Home, recording: bytes, stated: str, kept: str) -> None:
    heads = MP4 | {"Content-Disposition": f"attachment; {stated}"}
    with site(lambda _path: recording, headers=lambda _path: heads) as s:
        (file,) = fetch_address(home, f"{s.url}/talk.mp4").files
    assert file.name == kept
