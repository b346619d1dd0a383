"""The people of several videos over HTTP and from Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from flows.workspace import Workspace
from homer_video import VideoLibrary
from models.profile import load_profile
from store.database import Store
from tests.support.api import WordState, client_of, problem
from tests.support.asking import WordToolbox
from tests.support.several_videos import INTERVIEW, TALK, watch_people

PAIR = {"video": "talk", "person": "0", "other_video": "interview", "other": "face_0"}


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
    return cast("list[dict[str, Any]]", client.get("/people").json()["people"])


def test_a_pair_is_suggested_joined_and_undone(client: TestClient) -> None:
    assert people(client) == []
    (pair,) = client.get("/people/likely", params={"video": "talk"}).json()["pairs"]
    assert (pair["one"]["video"], pair["other"]["title"]) == (TALK, "interview")
    assert (pair["alike_in"], pair["sure"]) == ("face", True)
    done = client.post("/people/join", json=PAIR).json()
    assert done["told"] == f"Joined person 0 with person 0 of video {INTERVIEW}"
    (person,) = people(client)
    assert [one["title"] for one in person["videos"]] == ["interview", "talk"]
    last = person["last_seen"]
    assert (last["title"], last["start_s"], last["end_s"]) == ("interview", 0.0, 3.0)
    assert client.get("/people/likely").json() == {"pairs": []}
    again = client.post("/people/join", json=PAIR)
    assert "are one already" in problem(again, 422, "input")["detail"]
    body = {"video": "interview", "number": done["number"]}
    assert client.post("/people/undo", json=body).json()["undone"]
    assert people(client) == []


def test_a_pair_is_rejected(client: TestClient) -> None:
    assert client.post("/people/apart", json=PAIR).status_code == 200
    assert client.get("/people/likely").json() == {"pairs": []}
    assert problem(client.post("/people/apart", json=PAIR | {"other": "9"}), 404, "not-found")
    assert problem(client.post("/people/apart", json=PAIR | {"more": 1}), 422, "request")


def test_people_are_joined_from_python(two: Store) -> None:
    workspace = Workspace(two.home, two, load_profile("local"), WordToolbox())
    with VideoLibrary(nullcontext(workspace)) as library:
        (pair,) = library.likely_same("talk")
        library.join_people("talk", 0, "interview", 0)
        (person,) = library.persons
        assert [card.ref for card in person.characters] == [pair.other, pair.one]
        assert person.last is not None
        library.undo_people("interview")
        library.keep_people_apart("interview", 0, "talk", 0)
        assert library.persons == ()
        assert library.likely_same() == []


def test_a_person_is_renamed_split_off_and_forgotten(client: TestClient, two: Store) -> None:
    client.post("/people/join", json=PAIR)
    here = {"video": "talk", "person": "0"}
    renamed = client.post("/people/rename", json=here | {"name": "Ada"})
    assert "Ada" in renamed.json()["told"]
    (ada,) = people(client)
    assert [(one["title"], one["label"]) for one in ada["videos"]] == [
        ("interview", "Ada"),
        ("talk", "Ada"),
    ]
    client.post("/people/split", json={"video": "talk", "person": "Ada"})
    assert [len(one["videos"]) for one in people(client)] == [1, 1]
    client.post("/people/undo", json={"video": "talk"})
    assert len(people(client)) == 1
    forgotten = client.post("/people/forget", json=here | {"everywhere": True}).json()["forgotten"]
    assert [one["video"] for one in forgotten] == [INTERVIEW, TALK]
    assert people(client) == []
    assert problem(client.post("/people/forget", json=here), 404, "not-found")
    long = client.post("/people/rename", json=here | {"name": "x" * 2000})
    assert problem(long, 422, "request")
