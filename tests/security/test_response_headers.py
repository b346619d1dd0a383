"""No page of another site shows one of Homer's within its own; no answer passes for another."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from api.access import BODY_S, AccessRules, parse_keys
from api.mcp_server import make_mcp_app
from auth.connections import SafeHeaders
from store.database import Store
from tests.support.api import WordState, client_of
from tests.support.servers import homer_app, small_library
from tests.support.slow_clients import answer_of, held, served
from ui.application import _server_config

WORD = "correct horse"
KEY = "0123456789abcdef0123"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
PICTURE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
SCRIPT = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}


def assert_safe(headers: object) -> None:
    found = httpx.Headers(headers)  # type: ignore[arg-type]
    assert "frame-ancestors 'none'" in found["content-security-policy"]
    assert (found["x-frame-options"], found["x-content-type-options"]) == ("DENY", "nosniff")
    assert found["referrer-policy"] == "same-origin"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert len(found.get_list("content-security-policy")) == 1


@pytest.fixture(scope="module")
def app(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[str]:
    env = small_library(tmp_path_factory.mktemp("library"), make_database())
    with homer_app(env, WORD) as address:
        yield address


@pytest.fixture
def inside(app: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=app, trust_env=False) as client:
        assert client.post("/sign-in", data={"password": WORD}).status_code == 303
        yield client


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/", 200), ("/library", 200), ("/index.html", 200), ("/static/nothing.js", 200)),
        *(("/_stcore/health", 200), ("/_stcore/host-config", 200), ("/media/0.png", 404)),
        *((f"/image/{'0' * 64}", 403), (f"/video/{'0' * 16}", 403), ("/component/x/y", 404)),
        ("/sign-in", 303),
    ],
)
def test_every_answer_says_nobody_frames_it(inside: httpx.Client, path: str, status: int) -> None:
    found = inside.get(path)
    assert found.status_code == status
    assert_safe(found.headers)
    assert ("sandbox" in found.headers["content-security-policy"]) == path.startswith("/media/")


def test_so_do_scripts_and_styles(inside: httpx.Client) -> None:
    page = inside.get("/").text
    names = {piece.split('"')[0] for piece in page.split("./static/")[1:]}
    assert names
    for name in names:
        found = inside.get(f"/static/{name}")
        assert found.status_code == 200
        assert_safe(found.headers)


def test_behind_tls_every_cookie_is_for_tls_alone() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        response = PlainTextResponse("in")
        response.set_cookie("_streamlit_user", "x")
        response.set_cookie("own", "x", secure=True)
        await response(scope, receive, send)

    for scheme in ("http", "https"):
        found = TestClient(SafeHeaders(app), base_url=f"{scheme}://testserver").get("/")
        secure = ["; secure" in one.lower() for one in found.headers.get_list("set-cookie")]
        assert secure == [scheme == "https", True]


def test_only_a_configured_proxy_is_believed_about_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is on this machine could guess passwords as any number of clients."""
    for trusted, claimed in (("", "127.0.0.1"), ("127.0.0.1", "192.0.2.7")):
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
        seen: list[str] = []

        async def app(scope: Any, receive: Any, send: Any, seen: list[str] = seen) -> None:
            seen.append(scope["client"][0])
            await PlainTextResponse("in")(scope, receive, send)

        with served(_server_config(app)) as address:
            httpx.get(address, headers={"X-Forwarded-For": "192.0.2.7"}, trust_env=False)
        assert seen == [claimed]


def test_so_does_what_is_refused(app: str) -> None:
    with httpx.Client(base_url=app, trust_env=False) as client:
        for found, status in (
            (client.get("/"), 401),
            (client.get("/", headers={"Accept": "text/html"}), 303),
            (client.get("/sign-in"), 200),
            (client.post("/sign-in", data={"password": "wrong horse"}), 401),
            (client.post("/sign-in", headers={"Origin": "https://evil.example"}), 403),
            (client.get("/", headers={"Host": "evil.example"}), 400),
            (client.put("/_stcore/upload_file/x/y"), 401),
        ):
            assert found.status_code == status
            assert_safe(found.headers)
        assert client.get("/sign-in").headers["content-security-policy"].startswith("default-src")


def test_so_do_refused_event_streams_and_what_is_no_request(app: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(app.replace("http", "ws") + "/_stcore/stream", proxy=None)
    assert_safe(list(refused.value.response.headers.raw_items()))
    with held(app, 1, b"nonsense\r\n\r\n") as (one,):
        head = answer_of(one).split(b"\r\n\r\n")[0].decode()
    assert head.startswith("HTTP/1.1 400")
    assert_safe([tuple(line.split(": ", 1)) for line in head.splitlines()[1:]])


def test_every_answer_of_the_api_says_so_too(store: Store) -> None:
    with client_of(WordState(store, "local"), AccessRules(parse_keys(KEY))) as client:
        bearer = {"Authorization": f"Bearer {KEY}"}
        for found, status in (
            (client.get("/health"), 200),
            (client.get("/docs"), 200),
            (client.get("/videos", headers=bearer), 200),
            (client.get("/videos"), 401),
            (client.get("/nowhere", headers=bearer), 404),
            (client.get("/videos", headers={"Origin": "https://evil.example"}), 403),
            (client.post("/questions", headers=bearer, content=b"x" * 100_000), 413),
        ):
            assert found.status_code == status
            assert_safe(found.headers)
            assert found.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("sent", "refused"),
    [
        (PICTURE, True),
        (PICTURE | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, True),
        (SCRIPT, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        (PICTURE | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, False),
        (SCRIPT | {"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
    ],
)
def test_what_pages_of_other_sites_ask_for_is_refused_by_every_door(
    store: Store, app: str, sent: dict[str, str], refused: bool
) -> None:
    """An ``<img>`` sends no ``Origin``. A link that somebody follows is no request of a page."""
    state, open_to_all = WordState(store, "local"), AccessRules(())
    with client_of(state, open_to_all) as client:
        assert (client.get("/videos", headers=sent).status_code == 403) is refused
        assert (client.get("/search?query=x", headers=sent).status_code == 403) is refused
    mcp = TestClient(make_mcp_app(state, open_to_all, BODY_S))
    assert (mcp.post("/mcp", headers=sent, json={}).status_code == 403) is refused
    with httpx.Client(base_url=app, trust_env=False) as browser:
        assert browser.post("/sign-in", data={"password": WORD}).status_code == 303
        for path in ("/library", "/_stcore/health"):
            assert (browser.get(path, headers=sent).status_code == 403) is refused


class Framing(BaseHTTPRequestHandler):
    """A page of another site that shows the app within its own."""

    target = ""

    def do_GET(self) -> None:
        page = f'<iframe src="{self.target}/library"></iframe>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def framing(app: str) -> Iterator[str]:
    Framing.target = app
    with ThreadingHTTPServer(("127.0.0.1", 0), Framing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.full
@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="no chromium: apt install chromium")
def test_a_browser_shows_the_app_but_not_within_another_page(app: str, framing: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(f"{app}/library")
        page.get_by_label("Password").fill(WORD)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Library", exact=True).wait_for(timeout=60_000)
        assert not any("Content Security Policy" in text for text in said)
        # Another port of this machine is the same site: the browser sends the cookie along.
        page.goto(framing)
        page.wait_for_timeout(3000)
        shown = [frame.get_by_role("heading", name="Library").count() for frame in page.frames]
        assert shown == [0, 0]
        assert any("frame-ancestors" in text for text in said)
        browser.close()
