"""The people of several videos over HTTP and from Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
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
    return cast("list[dict[str, Any]]", client.get("/people").json())


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
    again = client.post("/people/merge", json=PAIR | {"into": "0"})
    assert "are one already" in problem(again, 422, "input")["detail"]
    here = {"video": "talk", "person": "0"}
    assert "Ada" in client.post("/people/rename", json=here | {"name": "Ada"}).json()["told"]
    client.post("/people/split", json={"video": "talk", "person": "Ada"})
    assert [len(one["characters"]) for one in people(client)] == [1, 1]
    assert client.post("/people/undo", json={"video": "talk"}).json()["undone"]
    forgotten = client.post("/people/forget", json=here | {"everywhere": True}).json()
    assert [one["video"] for one in forgotten] == [INTERVIEW, TALK]
    assert people(client) == []
    assert problem(client.post("/people/forget", json=here), 404, "not-found")


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"other": "9"}, 404, "not-found"),
        ({"other": "0", "more": 1}, 422, "request"),
        ({"other": "x" * 2000}, 422, "request"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: TestClient, more: dict[str, Any], status: int, code: str
) -> None:
    assert problem(client.post("/people/apart", json=PAIR | more), status, code)


def test_nothing_of_this_machine_is_named_over_http(client: TestClient, tmp_path: Path) -> None:
    here = {"video": "talk", "person": "0"}
    for path, name in (("/people/forget", "keep_undo"), ("/people/undo", "source")):
        named = {name: str(tmp_path / "ada.zip")}
        assert problem(client.post(path, json=here | named), 422, "request")
    assert not list(tmp_path.glob("*.zip"))


def test_people_are_joined_from_python(two: Store) -> None:
    workspace = Workspace(two.home, two, load_profile("local"), WordToolbox())
    with VideoLibrary(nullcontext(workspace)) as library:
        (pair,) = library.likely_same_people("talk", across=True)
        library.merge_people("talk", 0, 0, "interview")
        (person,) = library.people()
        assert [one.ref for one in person.characters] == [pair.other.ref, pair.one.ref]
        assert person.last_seen is not None
        library.undo_people("interview")
        library.keep_people_apart("interview", 0, 0, "talk")
        assert library.people() == library.likely_same_people() == []
        assert [one.number for one in library.people("talk").items] == [0, 1]
