"""Whatever is sent is answered: with what was asked for, or with a problem, and never with a fault.

The API is asked as over a network: any JSON, and what is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from store.database import open_store
from store.home import Home
from tests.support.api import WordState, client_of
from tests.support.asking import PARTY, remember_party
from tests.support.full_suite import examples

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["\0", "\ud800", "12:30", PARTY, "9" * 400, "<face_1>", "%", "https://x/", "_"]
    )
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = [
    *("question", "videos", "options", "as_of", "profile"),
    *("path", "url", "again", "nothing"),
]
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), JSON | st.lists(LEAVES, max_size=2))
LIKELY = st.fixed_dictionaries(
    {"question": st.text(max_size=8) | JSON},
    optional={
        "video": st.lists(st.sampled_from([PARTY, "", "\0", "x"]) | JSON, max_size=2) | JSON,
        "options": st.lists(JSON, max_size=3) | JSON,
        "as_of": LEAVES,
        "profile": LEAVES,
    },
)
AS_JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("bodies")
    with open_store(Home(folder / "home").make(), make_database()) as store:
        remember_party(store, 2)
        with client_of(WordState(store, "local", folders=(folder,))) as found:
            yield found


def answered(answer: Any) -> None:
    """A status of one's own fault, as a problem; or an answer."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]


@pytest.mark.parametrize("path", ["/questions", "/videos"])
def test_any_json_is_answered_without_a_fault(client: TestClient, path: str) -> None:
    @settings(max_examples=examples(15, 60))
    @given(LIKELY | OBJECTS | JSON)
    @example({"question": "\ud800", "video": ["\ud800"]})
    @example({"question": "Who?", "video": [PARTY], "options": ["\0", "\ud800"]})
    @example({"question": "Who?", "as_of": float("nan")})
    @example({"question": "Who?", "as_of": 10**400})
    @example({"question": "Who?", "as_of": 1e308})
    @example({"path": "\0"})
    @example({"path": "\ud800", "profile": "\0"})
    def tried(body: Any) -> None:
        answered(client.post(path, content=json.dumps(body), headers=AS_JSON))

    tried()


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"\xff\xfe", b"nul", b"[" * 50_000, b'{"question": "\\ud800"', b"\0" * 100),
        *(b'{"a":' * 10_000, b"1e999999", b"-" * 1000, b"9" * 60_000),
    ],
    ids=range(11),
)
@pytest.mark.parametrize("path", ["/questions", "/videos"])
def test_what_is_no_json_is_refused(client: TestClient, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers=AS_JSON)
    assert answer.status_code in (400, 422)
    answered(answer)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "x"])
def test_only_json_is_read_so_no_form_of_a_page_asks(client: TestClient, kind: str) -> None:
    body = json.dumps({"question": "Who?", "video": [PARTY]})
    answer = client.post("/questions", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    answered(answer)


def test_any_query_is_answered_without_a_fault(client: TestClient) -> None:
    words = st.text(max_size=6) | st.sampled_from(
        ["\0", "s1", "s999999999999999999", "1:00", PARTY]
    )

    @settings(max_examples=examples(15, 60))
    @given(
        st.sampled_from(["/search", "/videos", "/questions", f"/videos/{PARTY}/clips"]),
        st.dictionaries(
            st.sampled_from(["q", "video", "as_of", "focus", "limit", "offset", "profile"]), words
        ),
        st.sampled_from(["event", "video", "neighbor", "keyframe", "", "\0"]),
    )
    def tried(path: str, query: dict[str, str], mode: str) -> None:
        answered(client.get(path, params={"q": "x", "mode": mode, **query}))

    tried()
