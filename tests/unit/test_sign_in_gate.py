"""The gate before a small app: what passes it, what is told, and how one signs in and out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from auth.middleware import RequireSignIn, SameOrigin, SessionStore
from auth.signin_page import SignInPage
from auth.signing_in import SignInMethods, set_password
from store.home import Home
from ui.language import in_language

WORD = "correct horse"
EVIL = "https://evil.example"
ENTERED: list[str] = []
"""Grows with each who gave the right password."""


async def secret(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"the secret of {request.url.path}")


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    with suppress(WebSocketDisconnect):
        while True:
            await socket.send_text(f"heard {await socket.receive_text()}")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    home = Home(tmp_path).make()
    set_password(home, WORD)
    return home


@pytest.fixture
def client(place: Home) -> Iterator[TestClient]:
    """A browser that holds cookies and follows nothing by itself."""
    keeper = SessionStore(place, SignInMethods(password=True, oidc=None, names=()))
    door = SignInPage(keeper, on_sign_in=lambda: ENTERED.append(""), in_language=in_language)
    every = [*door.routes(), WebSocketRoute("/stream", stream)]
    every.append(Route("/{rest:path}", secret, methods=["GET", "PUT", "POST"]))
    doors = [Middleware(SameOrigin), Middleware(RequireSignIn, session_store=keeper)]
    with TestClient(Starlette(routes=every, middleware=doors), follow_redirects=False) as found:
        yield found


def sign_in(client: TestClient, word: str = WORD, wanted: str = "/library?q=x") -> int:
    return int(client.post("/sign-in", data={"password": word, "next": wanted}).status_code)


@pytest.mark.parametrize(
    "path",
    ["/", "/library", "/video/0123456789abcdef?until=1&key=x", "/static/js/index.js", "/media/x",
     "/_stcore/host-config", "/sign-in/google", "/sign-in/../video", "/%73ign-inx", "/sign-in/a/b",
     "/_stcore/health/", "//sign-in", "/SIGN-IN", "/auth/login", "/oauth2callback"],
)  # fmt: skip
def test_nothing_is_had_without_signing_in(client: TestClient, path: str) -> None:
    output = client.get(path)
    assert (output.status_code, output.text) == (401, "sign in first")
    for way in (client.put, client.post):
        assert way(path).status_code in (401, 405)
    led = client.get(path, headers={"Accept": "text/html"})
    assert led.status_code == 303
    assert led.headers["location"].startswith("/sign-in?next=%2F")
    assert "secret" not in led.text


def test_no_stream_is_opened_without_signing_in(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/stream"):
        pass
    assert refused.value.code == 1008


def test_the_page_speaks_the_browsers_language(client: TestClient) -> None:
    german = {"Accept-Language": "fr, de-AT;q=0.9, en;q=0.5"}
    page = client.get("/sign-in", headers=german)
    assert '<html lang="de">' in page.text
    assert '<label for="password">Passwort</label>' in page.text
    assert "<button>Anmelden</button>" in page.text
    wrong = client.post("/sign-in", data={"password": "wrong"}, headers=german)
    assert "Das Passwort ist falsch." in wrong.text
    page = client.get("/sign-in")
    assert '<html lang="en">' in page.text
    assert "<button>Sign in</button>" in page.text


def test_its_health_is_told_to_everybody(client: TestClient) -> None:
    assert client.get("/_stcore/health").status_code == 200


def test_who_has_the_password_comes_in_and_is_led_to_where_they_wanted(client: TestClient) -> None:
    page = client.get("/sign-in?next=/library?q=x")
    assert '<label for="password">' in page.text
    assert 'value="/library?q=x"' in page.text
    found = client.post("/sign-in", data={"password": WORD, "next": "/library?q=x"})
    assert (found.status_code, found.headers["location"]) == (303, "/library?q=x")
    cookie = found.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie.replace("samesite", "")
    assert client.get("/library").text == "the secret of /library"
    assert client.get("/sign-in").headers["location"] == "/"
    with client.websocket_connect("/stream") as socket:
        socket.send_text("hello")
        assert socket.receive_text() == "heard hello"


def test_over_tls_the_cookie_goes_nowhere_else(place: Home, client: TestClient) -> None:
    client.base_url = client.base_url.copy_with(scheme="https")
    found = client.post("/sign-in", data={"password": WORD})
    assert "; secure" in found.headers["set-cookie"].lower()


def test_a_wrong_password_is_reported_and_too_many_wait(client: TestClient) -> None:
    output = client.post("/sign-in", data={"password": "wrong", "next": "/a"})
    assert output.status_code == 401
    assert 'role="alert">The password is wrong.' in output.text
    assert "set-cookie" not in output.headers
    assert [sign_in(client, "wrong") for _ in range(5)] == [401] * 4 + [429]
    waits = client.post("/sign-in", data={"password": WORD})
    assert waits.status_code == 429
    assert 0 < int(waits.headers["retry-after"]) <= 61
    assert client.get("/").status_code == 401


@pytest.mark.parametrize("body", [b"", b"password=", b"x" * 10_000, b"\xff\xfe=%zz", b"password"])
def test_a_form_that_is_none_is_a_wrong_password(client: TestClient, body: bytes) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/sign-in", content=body, headers=form).status_code == 401


def test_whoever_signs_out_is_out_and_so_is_their_stream(client: TestClient) -> None:
    sign_in(client)
    cookies = dict(client.cookies)
    with client.websocket_connect("/stream") as socket:
        socket.send_text("one")
        assert socket.receive_text() == "heard one"
        assert client.post("/sign-out").headers["location"] == "/sign-in"
        socket.send_text("two")
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()
    assert client.get("/").status_code == 401
    client.cookies.update(cookies)
    assert client.get("/").status_code == 401


def test_another_password_signs_everybody_out(client: TestClient, place: Home) -> None:
    sign_in(client)
    assert client.get("/").status_code == 200
    set_password(place, "another horse")
    assert client.get("/").status_code == 401
    assert sign_in(client) == 401
    assert sign_in(client, "another horse") == 303


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil.example"])
def test_nobody_is_led_elsewhere(client: TestClient, wanted: str) -> None:
    assert EVIL not in client.get("/sign-in", params={"next": wanted}).text
    found = client.post("/sign-in", data={"password": WORD, "next": wanted})
    assert found.headers["location"] == "/"


def test_the_page_holds_no_script_and_what_is_wanted_is_no_markup(client: TestClient) -> None:
    page = client.get("/sign-in", params={"next": '/"><script>alert(1)</script>'})
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "origin", [EVIL, "null", "http://testserver.evil.example", "http://testserver:81", "http://["]
)
def test_a_page_of_another_site_begins_nothing(client: TestClient, origin: str) -> None:
    sign_in(client)
    assert client.get("/video/x", headers={"Origin": origin}).status_code == 403
    assert client.post("/x", headers={"Origin": origin}).status_code == 403
    assert client.post("/sign-out", headers={"Origin": origin}).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/stream", headers={"Origin": origin}),
    ):
        pass
    own = {"Origin": "http://testserver"}
    assert client.post("/x", headers=own).status_code == 200
    with client.websocket_connect("/stream", headers=own) as socket:
        socket.send_text("hello")
        assert socket.receive_text() == "heard hello"


def test_only_who_has_the_password_is_said_to_have_come_in(client: TestClient) -> None:
    before = len(ENTERED)
    assert sign_in(client, "a guess") == 401
    assert len(ENTERED) == before
    assert sign_in(client) == 303
    assert len(ENTERED) == before + 1
