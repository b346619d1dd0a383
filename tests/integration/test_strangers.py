"""What strangers get from every request, tool and page: nothing of a video that is not theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, MCPError
from starlette.testclient import TestClient

from api.access import AccessRules, parse_keys
from api.door import OPEN_ACTS, OPEN_TO_VIEWERS
from library.rights import give_right, rights_on
from store.database import Store
from tests.integration.test_mcp import client_at, on_http
from tests.support.api import WordState, client_of
from tests.support.app_pages import app_over, open_page, sign_in, words
from tests.support.asking import PARTY, remember_party
from tests.support.marked_library import MARK, VIDEO, plant
from ui.navigation import HIDDEN, NOT_FOR_VIEWERS, PAGE_NAMES, SECTIONS
from ui.sign_in import SignInState, user_in_grants

pytestmark = pytest.mark.usefixtures("tampered")

READER, OPERATOR = "reader-0123456789abcdef", "operator-0123456789abcdef"
RULES = AccessRules(parse_keys(f"reader:{READER},operator:{OPERATOR}"))
ANA = "ana@example.org"
TRAJECTORY = "t1"
"""A question about the video of others, of ``marked_library``."""


@pytest.fixture
def shared(store: Store) -> Store:
    """A library with a video that strangers may not see, and a party that they may."""
    plant(store, VIDEO)
    remember_party(store)
    for name in (ANA, "key:reader"):
        give_right(store, name, video=PARTY)
    give_right(store, "key:operator", everything=True)
    rights_on(store)
    return store


@pytest.fixture
def client(shared: Store) -> Iterator[TestClient]:
    with client_of(WordState(shared, "local"), RULES) as found:
        yield found


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


VALUES = {
    "name": (VIDEO, MARK, TRAJECTORY, "list_frames", PARTY),
    "id": (TRAJECTORY,),
    "video": (VIDEO, MARK, PARTY),
    "frame": ("1",),
}
"""For the parameters of addresses: also what guesses right."""
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/questions"): {"question": f"What is {MARK}?", "video": [VIDEO]},
    ("POST", "/v1/chat/completions"): {
        "model": f"homer/{VIDEO}",
        "messages": [{"role": "user", "content": f"What is {MARK}?"}],
    },
    ("POST", "/tools/{name}"): {"query": MARK, "video": [VIDEO]},
}
QUERY = {"query": MARK, "q": MARK, "video": VIDEO, "at": "31", "mode": "video"}


def addresses(path: str) -> list[str]:
    found = [path]
    for name in re.findall(r"{(\w+)}", path):
        found = [one.replace(f"{{{name}}}", value) for one in found for value in VALUES[name]]
    return found


def leaks(text: str) -> bool:
    """Whether an answer has something of the video, other than what was asked with."""
    return f"{MARK} is here".lower() in text.lower() or "film of" in text.lower()


def test_no_request_of_a_stranger_shows_the_video(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    walked = set()
    for path, operations in paths.items():
        for method in map(str.upper, operations):
            for address in addresses(path):
                for query in ({}, QUERY):
                    answer = client.request(
                        method,
                        address,
                        params=query,
                        json=BODIES.get((method, path), {}) if method == "POST" else None,
                        headers=bearer(READER),
                    )
                    assert not leaks(answer.text), (method, address, answer.text)
                    assert answer.status_code < 500, (method, address, answer.text)
            if (method, path) not in OPEN_TO_VIEWERS | OPEN_ACTS and path != "/health":
                assert answer.status_code in (403, 422), (method, path, answer.text)
            walked.add((method, path))
    assert walked >= OPEN_TO_VIEWERS | OPEN_ACTS


def test_the_operator_sees_what_the_stranger_does_not(client: TestClient) -> None:
    whole, part = (client.get("/videos", headers=bearer(key)).json() for key in (OPERATOR, READER))
    assert (len(whole["items"]), whole["total"]) == (2, 2)
    assert ([one["id"] for one in part["items"]], part["total"]) == ([PARTY], 1)
    for path in (f"/videos/{VIDEO}", f"/videos/{VIDEO}/clips", "/videos", "/alerts/hits"):
        assert leaks(client.get(path, headers=bearer(OPERATOR)).text), path
    for path in (f"/videos/{VIDEO}", f"/videos/{VIDEO}/clips", f"/questions/{TRAJECTORY}"):
        refused, absent = (
            client.get(one, headers=bearer(READER))
            for one in (path, path.replace(VIDEO, "0" * 16).replace(TRAJECTORY, "zz"))
        )
        assert refused.status_code == absent.status_code == 404, path
        assert refused.json()["code"] == absent.json()["code"]


def test_a_stranger_asks_the_whole_library_that_is_theirs(client: TestClient) -> None:
    body = {"question": "Who opens the gate?"}
    answer = client.post("/questions", json=body, headers=bearer(READER)).json()
    assert {one["video"] for one in answer["citations"]} <= {PARTY}
    found = client.get("/search", params={"query": "here"}, headers=bearer(READER)).json()
    assert {one["video"] for one in found["evidence"]} <= {PARTY}
    listed = client.get("/questions", headers=bearer(READER)).json()
    assert [one["id"] for one in listed["items"]] == [answer["id"]]
    deleted = client.delete(f"/videos/{PARTY}", headers=bearer(READER))
    assert (deleted.status_code, deleted.json()["code"]) == (403, "rights")


def test_no_tool_of_mcp_shows_the_video(shared: Store) -> None:
    import asyncio

    calls: dict[str, dict[str, Any]] = {
        "videos": {},
        "search": {"query": MARK},
        "show_moment": {"video": VIDEO, "at": "31"},
        "people": {"video": VIDEO},
        "library_people": {},
        "outline": {"video": VIDEO},
        "ask": {"question": f"What is {MARK}?", "video": [VIDEO]},
    }

    async def walk(address: str) -> list[str]:
        texts = []
        async with client_at(address, key=READER) as found:
            assert {tool.name for tool in (await found.list_tools()).tools} == {*calls}
            for name, arguments in calls.items():
                texts.append(repr(await found.call_tool(name, arguments)))
            texts.append(repr(await found.list_resources()))
            texts += [await _read(found, uri) for uri in RESOURCES]
        return texts

    with on_http(WordState(shared, "local"), RULES) as address:
        texts = asyncio.run(walk(address))
    assert not [text for text in texts if leaks(text)]
    assert VIDEO not in "".join([texts[0], texts[1], texts[4], texts[7]])
    assert PARTY in texts[0]


RESOURCES = (f"homer://videos/{VIDEO}", f"homer://questions/{TRAJECTORY}")


async def _read(client: Client, uri: str) -> str:
    try:
        return repr(await client.read_resource(uri))
    except MCPError as refused:
        return str(refused)


class TestPages:
    @pytest.fixture
    def ana(self, shared: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
        sign_in(monkeypatch, ANA)
        with app_over(shared, monkeypatch):
            yield shared

    def test_no_page_shows_the_video(self, ana: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        chosen = {"video": VIDEO, "trajectory": TRAJECTORY, "t": 31, "show": "Clips"}
        for name in PAGE_NAMES:
            for query in ({}, chosen) if name in SECTIONS[""] else (chosen,):
                page = open_page(name, **query)
                assert not leaks(everything(page)), name
            linked = name.capitalize() in words(page)
            assert name in HIDDEN or linked != (name in NOT_FOR_VIEWERS)
        sign_in(monkeypatch, "operator@example.org")
        give_right(ana, "operator@example.org", everything=True)
        page = open_page("alerts")
        assert leaks(everything(page))
        assert "Health" in words(page)

    def test_a_browser_that_says_nothing_is_not_taken_for_the_operator(
        self, ana: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ui.sign_in.user_from_cookies", lambda _cookies: {})
        monkeypatch.setattr("ui.sign_in.SIGN_IN", SignInState(required=True))
        left = open_page("library")
        assert PARTY not in everything(left)
        assert not left.get("file_uploader")
        by_password = SignInState(required=True, by_password=lambda _cookies: True)
        monkeypatch.setattr("ui.sign_in.SIGN_IN", by_password)
        assert user_in_grants() is None
        copied = {"is_logged_in": True, "provider": "default", "sub": "1"}
        monkeypatch.setattr("ui.sign_in.user_from_cookies", lambda _cookies: copied)
        assert user_in_grants() is None, "a provider's cookie counts in its own session only"

    def test_her_own_is_there_without_what_changes_it(self, ana: Store) -> None:
        page = open_page("library")
        assert "3:00" in words(page)
        assert PARTY in everything(page)
        assert not [one.label for one in page.button if one.label in ("Watch", "Delete")]
        assert not page.get("file_uploader")
        people = open_page("people", video=PARTY)
        assert "Ann" in words(people)
        assert not [one.label for one in people.button if one.label.startswith("Merge")]
        assert not [one for one in people.text_input if one.label.startswith("Name of")]


def everything(page: Any) -> str:
    return str(page._tree) + words(page)
