"""Who may come in to the API: keys, names, pages of other sites, and what the audit log is told."""

from __future__ import annotations

import os

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from api.access import (
    MIN_KEY_CHARS,
    AccessRules,
    ApiAuth,
    ApiKey,
    access_rules,
    find_label,
    parse_keys,
)
from domain.errors import SetupError
from domain.rights import acting_user
from tests.support.api import HERE, problem

ANN, BOB = "a" * MIN_KEY_CHARS, "b" * (MIN_KEY_CHARS + 20)
EVERYWHERE = "0.0.0.0"


async def whoami(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(acting_user.get()))


def client_of(ways: AccessRules, address: str = "127.0.0.1") -> TestClient:
    every = [Route("/{rest:path}", whoami, methods=["GET", "POST"])]
    app = Starlette(routes=every, middleware=[Middleware(ApiAuth, rules=ways)])
    return TestClient(app, base_url=HERE, client=(address, 5))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOMER_API_KEY", "HOMER_API_NAMES"):
        monkeypatch.delenv(name, raising=False)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_on_this_machine_anybody_comes_in_and_is_known_by_address() -> None:
    assert client_of(access_rules("127.0.0.1")).get("/videos").text == "api (127.0.0.1)"
    assert acting_user.get() is None


@pytest.mark.parametrize("host", [EVERYWHERE, "192.168.1.2", "::", "homer.example"])
def test_elsewhere_it_does_not_open_without_a_key(host: str) -> None:
    with pytest.raises(SetupError, match="open to everybody who can reach") as output:
        access_rules(host)
    assert "HOMER_API_KEY" in str(output.value)


def test_nor_by_a_name_that_a_proxy_leads_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_API_NAMES", "homer.example")
    with pytest.raises(SetupError, match=r"homer\.example"):
        access_rules("127.0.0.1")
    monkeypatch.setenv("HOMER_API_KEY", ANN)
    there = client_of(access_rules("127.0.0.1"))
    assert there.get("/videos", headers={"Host": "homer.example", **bearer(ANN)}).is_success


def test_keys_are_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_API_KEY", ANN)
    ways = access_rules(EVERYWHERE)
    assert [key.label for key in ways.keys] == ["key"]
    assert "HOMER_API_KEY" not in os.environ
    assert ANN not in repr(ways)


def test_a_key_may_come_from_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.keys_and_packages._from_keyring", lambda name: f"ring:{BOB}")
    assert find_label(access_rules(EVERYWHERE).keys, BOB) == "ring"


def test_each_key_has_its_name_in_the_audit_log() -> None:
    there = client_of(AccessRules(parse_keys(f"ann:{ANN}, {BOB}")))
    assert there.get("/videos", headers=bearer(ANN)).text == "api (ann)"
    assert there.get("/videos", headers={"authorization": f"bearer  {BOB}"}).text == "api (key)"


@pytest.mark.parametrize(
    "given",
    [
        *({}, bearer(""), bearer(ANN + "x"), bearer(ANN[:-1]), bearer(f"ann:{ANN}")),
        *({"Authorization": f"Basic {ANN}"}, {"Authorization": ANN}, {"Cookie": f"key={ANN}"}),
        *({"Authorization": b"Bearer \xff\xfe"}, {"X-Api-Key": ANN}),
    ],
)
def test_without_a_key_nothing_is_had(given: dict[str, str]) -> None:
    there = client_of(AccessRules(parse_keys(f"ann:{ANN}")))
    for path in ("/videos", "/questions", "/media/keyframes/x/1", "//health", "/health/", "/docs/"):
        answer = there.get(path, headers=given)
        output = problem(answer, 401, "key")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert ANN not in str(output)
    for path in ("/health", "/docs", "/openapi.json"):
        assert there.get(path, headers=given).text == "api (127.0.0.1)"


@pytest.mark.parametrize(
    "given", ["short", f"ann:{'x' * (MIN_KEY_CHARS - 1)}", f"{ANN},bob:short", "é" * 30, "a b" * 20]
)
def test_a_weak_key_is_refused_without_being_told(given: str) -> None:
    with pytest.raises(SetupError, match=f"not {MIN_KEY_CHARS} or more") as output:
        parse_keys(given)
    assert given.rpartition(":")[2] not in str(output.value)


@pytest.mark.parametrize(
    "given", ["{}:ann", "ok:{0},{0}{0}:{0}", "{0}{0}:{0}", "a b:{}", ":{}", "é:{}"]
)
def test_keys_are_named_by_their_place_for_what_is_a_name_may_be_a_secret(given: str) -> None:
    with pytest.raises(SetupError, match=r"key [12]\b") as output:
        parse_keys(given.format("s3cret" * 4))
    assert "s3cret" not in str(output.value)


@pytest.mark.parametrize(
    "name", ["Forwarded", "X-Forwarded-For", "x-forwarded-x", "X-Real-IP", "Via"]
)
def test_what_a_proxy_passes_on_needs_a_key(name: str) -> None:
    passed, there = {name: "127.0.0.1"}, client_of(access_rules("127.0.0.1"))
    assert "HOMER_API_KEY" in problem(there.get("/videos", headers=passed), 403, "proxy")["help"]
    assert there.get("/health", headers=passed).is_success
    keyed = client_of(AccessRules(parse_keys(ANN)))
    assert keyed.get("/videos", headers={**passed, **bearer(ANN)}).is_success


def test_every_key_is_compared_whole_whichever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many comparisons for the first key as for none: time tells nothing."""
    compared: list[bytes] = []

    def counting(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", counting)
    keys, counts = parse_keys(f"ann:{ANN},bob:{BOB}"), []
    for given in (ANN, BOB, "nobody", ""):
        compared.clear()
        find_label(keys, given)
        counts.append(len(compared))
    assert counts == [2, 2, 2, 2]
    assert all(isinstance(key, ApiKey) and len(key.digest) == 32 for key in keys)


def test_a_page_of_another_site_asks_in_vain() -> None:
    there = client_of(access_rules("127.0.0.1"))
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9", "http://["):
        problem(there.post("/questions", headers={"Origin": origin}), 403, "origin")
    assert there.get("/videos", headers={"Origin": HERE}).is_success


def test_a_name_that_is_not_this_machines_is_not_answered_to() -> None:
    """A site whose name leads to 127.0.0.1 could read everything otherwise."""
    there = client_of(access_rules("127.0.0.1"))
    for host in ("evil.example", "evil.example:8600", "", "127.0.0.1.evil.example"):
        problem(there.get("/videos", headers={"Host": host}), 421, "host")
    for host in ("localhost:8600", "127.0.0.1", "[::1]:8600", "LOCALHOST"):
        assert there.get("/videos", headers={"Host": host}).is_success


def test_every_name_that_it_has_is_answered_to_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert client_of(access_rules("127.0.0.2")).get("/a", headers={"Host": "127.0.0.2"}).is_success
    monkeypatch.setenv("HOMER_API_NAMES", "Homer.Example")
    monkeypatch.setenv("HOMER_API_KEY", ANN)
    there = client_of(access_rules(EVERYWHERE))
    assert there.get("/a", headers={"Host": "homer.example", **bearer(ANN)}).is_success
    output = problem(there.get("/a", headers={"Host": "127.0.0.1"}), 421, "host")
    assert "use homer.example" in output["help"]
    assert "127.0.0.1" not in output["help"]
