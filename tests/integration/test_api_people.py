"""The people of several videos over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from store.database import Store
from tests.support.api import WordState, client_of, problem
from tests.support.several_videos import INTERVIEW, TALK, watch_people

PAIR = {"video": "talk", "person": "0", "other_video": "interview"}


@pytest.fixture
def two(store: Store) -> Store:
    watch_people(store, TALK, {1: 0.9, 2: 0.9})
    watch_people(store, INTERVIEW, {1: 0.9, 3: 0.9})
    return store


@pytest.fixture
def client(two: Store) -> Iterator[TestClient]:
    with client_of(WordState(two, "local")) as found:
        yield found


def people(client: TestClient) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", client.get("/people").json()["items"])


def test_people_are_joined_split_named_and_forgotten_over_http(client: TestClient) -> None:
    assert people(client) == []
    (pair,) = client.get("/people/likely", params={"video": "talk", "across": "true"}).json()
    assert (pair["one"]["video"], pair["other"]["title"]) == (TALK, "interview")
    assert (pair["kind"], pair["sure"]) == ("face", True)
    done = client.post("/people/merge", json=PAIR | {"into": "face_0"}).json()
    assert done["told"] == f"Joined person 0 with person 0 of video {INTERVIEW}"
    assert done.keys() == {"number", "kind", "told", "numbers", "undone", "video"}
    (person,) = people(client)
    assert [one["title"] for one in person["characters"]] == ["interview", "talk"]
    last = person["last_seen"]
    assert (last["title"], last["start_s"], last["end_s"]) == ("interview", 0.0, 3.0)
    assert client.get("/people/likely").json() == []
    here = {"video": "talk", "person": "0"}
    assert "Ada" in client.post("/people/rename", json=here | {"name": "Ada"}).json()["told"]
    client.post("/people/split", json={"video": "talk", "person": "Ada"})
    assert [len(one["characters"]) for one in people(client)] == [1, 1]
    assert client.post("/people/undo", json={"video": "talk"}).json()["undone"]
    forgotten = client.post("/people/forget", json=here | {"everywhere": True}).json()
    assert [one["video"] for one in forgotten] == [INTERVIEW, TALK]
    assert people(client) == []
    assert problem(client.post("/people/forget", json=here), 404, "not-found")
