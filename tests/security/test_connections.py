"""Connections that ask slowly, or never finish asking, keep nobody waiting who may come in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from websockets.sync.client import connect

from auth.connections import LimitedConnection, admit
from tests.support.full_suite import in_full
from tests.support.servers import homer_app, homer_serve, small_library
from tests.support.slow_clients import answer_of, head_of, held, is_closed, served

KEY = "0123456789abcdef0123"
WORD = "correct horse"
PROMPT_S = 3.0
"""An honest request takes less, also on a busy machine; those that are held take 20 or more."""
SLOTS, CONNECTIONS = 80, 300
"""More than requests are carried out at a time, and more than connections are held."""
HALF_HEAD = b"GET /videos HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@pytest.fixture(scope="module")
def library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> dict[str, str]:
    return small_library(tmp_path_factory.mktemp("library"), make_database())


@pytest.fixture(scope="module")
def closed_api(library: dict[str, str]) -> Iterator[str]:
    with homer_serve({**library, "HOMER_API_KEY": KEY}, "--body-seconds", "2") as address:
        yield address


@pytest.fixture(scope="module")
def open_api(library: dict[str, str]) -> Iterator[str]:
    """The API of this machine, without a key."""
    with homer_serve(library) as address:
        yield address


def asked(address: str, key: str = "", **more: object) -> httpx.Response:
    """What somebody is told who asks at once, and how soon."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
        begun, found = time.monotonic(), client.get("/videos", timeout=30)
        assert time.monotonic() - begun < PROMPT_S
        return found


@pytest.mark.parametrize("count", [SLOTS, in_full(CONNECTIONS)])
@pytest.mark.parametrize(
    "sent",
    [head_of("/questions") + b"{", HALF_HEAD, b"", head_of("/health") + b"{"],
    ids=["half a body", "half a head", "nothing", "half a body for what is open"],
)
def test_who_has_a_key_is_always_answered(closed_api: str, sent: bytes, count: int) -> None:
    with held(closed_api, count, sent):
        assert asked(closed_api, KEY).status_code == 200


@pytest.mark.parametrize("count", [SLOTS, CONNECTIONS])
def test_half_a_body_takes_no_place_where_no_key_is_needed(open_api: str, count: int) -> None:
    with held(open_api, count, head_of("/questions") + b"{"):
        assert asked(open_api).status_code == 200


def test_nor_does_that_of_somebody_who_has_a_key(closed_api: str) -> None:
    with held(closed_api, SLOTS, head_of("/questions", f"Authorization: Bearer {KEY}") + b"{"):
        assert asked(closed_api, KEY).status_code == 200


def test_without_a_key_the_answer_comes_before_the_body(closed_api: str) -> None:
    with held(closed_api, 1, head_of("/questions", "Connection: close") + b"{") as (one,):
        begun = time.monotonic()
        assert answer_of(one).startswith(b"HTTP/1.1 401")
        assert time.monotonic() - begun < PROMPT_S


def test_a_body_that_is_said_to_be_too_large_is_not_waited_for(closed_api: str) -> None:
    output = (f"Authorization: Bearer {KEY}", "Connection: close")
    with held(closed_api, 1, head_of("/questions", *output, length=10**9) + b"{") as (one,):
        assert answer_of(one).startswith(b"HTTP/1.1 413")


def test_a_body_has_a_time_limit_that_can_be_set(closed_api: str) -> None:
    with held(closed_api, 1, head_of("/questions", f"Authorization: Bearer {KEY}")) as (one,):
        begun = time.monotonic()
        assert answer_of(one).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - begun < 2 + PROMPT_S


class Hasty(LimitedConnection):
    """As the real one, with less time and room."""

    max_connections, wait_timeout_s = 8, 0.5


async def refuse(_: Request) -> PlainTextResponse:
    return PlainTextResponse("no", 401)


async def slow(request: Request) -> PlainTextResponse:
    admit(request.scope)
    await asyncio.sleep(1.2)
    return PlainTextResponse("done")


@pytest.fixture(scope="module")
def hasty() -> Iterator[str]:
    app = Starlette(routes=[Route("/no", refuse, methods=["GET", "POST"]), Route("/slow", slow)])
    with served(uvicorn.Config(app, http=Hasty, log_config=None, lifespan="off")) as address:
        yield address


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, head_of("/no") + b"{"])
def test_a_connection_that_is_not_admitted_is_closed_in_time(hasty: str, sent: bytes) -> None:
    with held(hasty, 1, sent) as (one,):
        assert is_closed(one, 5)


@pytest.mark.parametrize("sent", [HALF_HEAD, head_of("/no", length=10**6)])
def test_a_byte_now_and_then_gains_no_time(hasty: str, sent: bytes) -> None:
    with held(hasty, 1, sent) as (one,):
        begun, closed = time.monotonic(), False
        while not closed and time.monotonic() - begun < 5:
            try:
                one.sendall(b"x")
            except ConnectionError:
                closed = True
            time.sleep(0.05)
        assert closed


def test_what_is_admitted_takes_its_time_and_keeps_its_place(hasty: str) -> None:
    ask = b"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with held(hasty, 3, ask) as admitted, held(hasty, 20, b""):
        assert all(b"done" in answer_of(one) for one in admitted)


def test_where_there_is_no_room_the_address_with_most_gives_way(hasty: str) -> None:
    with held(hasty, 1, HALF_HEAD, "127.0.0.2") as (one,), held(hasty, 20, HALF_HEAD):
        one.sendall(b"1\r\nConnection: close\r\n\r\n")
        assert answer_of(one).startswith(b"HTTP/1.1 404")


@pytest.fixture(scope="module")
def app(library: dict[str, str]) -> Iterator[str]:
    with homer_app(library, WORD) as address:
        yield address


@pytest.mark.parametrize(
    "sent",
    [
        head_of("/sign-in") + b"password=",
        head_of("/_stcore/upload_file/x/y") + b"-",
        b"GET / HTTP/1.1\r\nX-Slow: ",
        b"",
    ],
    ids=["half a form", "half an upload", "half a head", "nothing"],
)
def test_the_app_is_there_for_who_signs_in_whatever_others_hold(app: str, sent: bytes) -> None:
    with held(app, CONNECTIONS, sent), httpx.Client(base_url=app, trust_env=False) as client:
        begun = time.monotonic()
        assert client.post("/sign-in", data={"password": WORD}).status_code == 303
        assert "Streamlit" in client.get("/").text
        assert time.monotonic() - begun < PROMPT_S
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        url = app.replace("http", "ws") + "/_stcore/stream"
        with (
            connect(url, additional_headers={"Cookie": cookies}, proxy=None) as stream,
            held(app, CONNECTIONS, sent),
        ):
            stream.ping().wait(10)


def test_forms_that_never_come_use_up_nobodys_tries(app: str) -> None:
    with httpx.Client(base_url=app, trust_env=False) as client:
        codes = {client.post("/sign-in", data={"password": ""}).status_code for _ in range(8)}
        assert codes == {401}
        assert client.post("/sign-in", data={"password": WORD}).status_code == 303
