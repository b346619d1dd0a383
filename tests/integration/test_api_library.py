"""The library over HTTP: what is there, a page at a time and as of a moment; and deleting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from domain.asking import Citation
from domain.time import TimeSpan
from flows import video_locks
from library.moments import moments_of
from store.database import Store, open_store
from store.driver import parse_url
from store.home import Home
from store.queries.rights import audit_entries
from store.tables.schema import KeyframeRow
from tests.support.api import WordState, client_of, problem
from tests.support.asking import PARTY, remember_party
from tests.support.machine import VIDEO
from tests.support.machine import watched as watch_garden
from tests.support.remembered import paint_keyframes, recording

JPEG = b"\xff\xd8\xff\xe0 a frame"


@pytest.fixture(scope="module")
def library(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Store]:
    """A party with keyframes, and a garden of which only the clips are known."""
    with open_store(Home(tmp_path_factory.mktemp("api") / "home").make(), make_database()) as store:
        remember_party(store)
        recording(store, PARTY, [4.0, 65.0])
        with store.begin() as session:
            for row in session.query(KeyframeRow):
                row.blob = store.blobs.put(JPEG + str(row.time_ms).encode())
        watch_garden(store)
        yield store


@pytest.fixture(scope="module")
def client(library: Store) -> Iterator[TestClient]:
    with client_of(WordState(library, "local")) as found:
        yield found


def test_videos_come_by_title_a_page_at_a_time(client: TestClient) -> None:
    first = client.get("/videos", params={"limit": 1}).json()
    assert (first["total"], first["next"]) == (2, 1)
    rest = client.get("/videos", params={"limit": 1, "offset": first["next"]}).json()
    assert rest["next"] is None
    names = [one["title"] for page in (first, rest) for one in page["items"]]
    assert names == [PARTY, "garden"]
    assert rest["items"][0] == {
        "id": VIDEO,
        "title": "garden",
        "duration_s": 180.0,
        "width": 0,
        "height": 0,
        "state": "paused",
        "profile": "local",
        "clips": 6,
        "done": 6,
        "failed": 0,
    }
    assert client.get("/videos", params={"query": "gard"}).json()["total"] == 1


def test_a_video_is_found_by_its_title_with_the_size_of_its_memory(client: TestClient) -> None:
    found = client.get("/videos/garden").json()
    assert (found["id"], found["held"]["clips"]) == (VIDEO, 6)
    assert "path" not in found
    assert "'nothing'" in problem(client.get("/videos/nothing"), 404, "not-found")["detail"]


def test_clips_tell_what_was_said_with_their_images(client: TestClient) -> None:
    page = client.get(f"/videos/{PARTY}/clips", params={"limit": 3}).json()
    assert (page["total"], page["next"]) == (6, 3)
    texts = [[line["text"] for line in clip["lines"]] for clip in page["items"]]
    assert texts[0] == ["Ann opens the wooden gate of the garden", "The sky is clear"]
    (frame,) = page["items"][2]["keyframes"]
    found = client.get(frame["image"])
    assert (found.status_code, found.content) == (200, JPEG + b"65000")
    assert found.headers["content-type"] == "image/jpeg"
    assert found.headers["cache-control"].startswith("private")


def test_clips_tell_what_their_keyframes_show(library: Store, client: TestClient) -> None:
    with library.begin() as session:
        at_65_s = (KeyframeRow.video_id == PARTY, KeyframeRow.time_ms == 65_000)
        session.execute(update(KeyframeRow).where(*at_65_s).values(description="<face_90> waves."))
    (clip,) = client.get(f"/videos/{PARTY}/clips", params={"offset": 2, "limit": 1}).json()["items"]
    (frame,) = clip["keyframes"]
    assert (frame["text"], frame["start_s"]) == ("An unnamed person waves.", 65.0)
    assert frame["ref"] == f"k{frame['image'].rpartition('/')[2]}"


@pytest.mark.parametrize(
    "query",
    [
        *("as_of=soon", "as_of=1:2:3:4", "as_of=-1", "as_of=d9 999999999:00:00", "limit=0"),
        *("limit=101", "offset=-1", "offset=x", "limit=99999999999999999999", "as_of=" + "9" * 41),
    ],
)
def test_what_is_no_moment_and_no_page_is_reported(client: TestClient, query: str) -> None:
    answer = client.get(f"/videos/{PARTY}/clips?{query}")
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        *("/videos/%00", "/videos/%ff", "/videos/" + "x" * 500, "/videos/%F0%9F%98%80"),
        *("/questions/%00", "/questions/%25", "/questions/_", "/jobs/..%2f..%2fhomer", "/jobs/x"),
        *(f"/media/keyframes/{PARTY}/0", f"/media/keyframes/{PARTY}/999999"),
        *("/media/keyframes/..%2f/1", f"/media/keyframes/{VIDEO}/1", "/nothing"),
        "/media/keyframes/" + "a" * 16 + "/" + "9" * 30,
    ],
)
def test_odd_names_are_not_found_and_nothing_breaks(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_no_image_of_a_later_moment_is_named(library: Store) -> None:
    """The keyframe nearest to 0:50 is of 1:05."""
    said = Citation(ref="m1", video=PARTY, span=TimeSpan.of(50_000, 52_000), text="x")
    later = moments_of(library, [said])[0].image
    assert later is not None
    assert moments_of(library, [said], 90_000)[0].image == later
    # At 1:05 the clip from 1:00 on is not watched to its end.
    assert [moments_of(library, [said], at)[0].image for at in (60_000, 65_000)] == [None, None]
    named = said.model_copy(update={"ref": f"k{later.rpartition('/')[2]}"})
    assert moments_of(library, [named])[0].image == later
    assert moments_of(library, [named], 60_000)[0].image is None


def test_images_are_found_and_can_be_fetched(client: TestClient) -> None:
    ask = {"query": "the gate", "mode": "keyframe", "video": PARTY, "as_of": "70"}
    found = client.get("/search", params=ask).json()
    assert found["images"]
    for one in found["images"]:
        assert one["start_s"] <= 70
        assert client.get(one["image"]).content.startswith(JPEG)


def test_images_of_a_time_and_like_another_are_found(store: Store) -> None:
    remember_party(store)
    colours = {65.0: (200, 30, 30), 95.0: (190, 40, 40), 125.0: (20, 30, 200)}
    ids = paint_keyframes(store, PARTY, colours)
    with client_of(WordState(store, "local")) as client:
        ask = {"mode": "keyframe", "video": PARTY}
        of_time = client.get("/search", params={**ask, "at": "1:05-1:06"}).json()
        assert of_time["images"][0]["start_s"] == 65
        assert of_time["searched"].startswith("the images of 01:05-01:06")
        alike = client.get("/search", params={**ask, "like": f"k{ids[65.0]}"}).json()
        assert [image["start_s"] for image in alike["images"]] == [95]
        assert alike["evidence"][0]["ref"] == f"k{ids[95.0]}"
        early = {**ask, "like": f"k{ids[65.0]}", "as_of": "1:35"}
        problem(client.get("/search", params={**early, "like": f"k{ids[125.0]}"}), 404, "not-found")
        for wrong in (
            {"at": "noon"},
            {"at": "9:00-8:00"},
            {"like": "/etc/passwd"},
            {"like": "m3"},
            {"like": "k1", "query": "rain"},
            {"like": "k1", "at": "1:05"},
            {"like": "k1", "mode": "video"},
            {"at": "1:05", "mode": "event", "query": "rain"},
        ):
            problem(client.get("/search", params={**ask, **wrong}), 422, "input")


def test_a_search_without_words_or_of_unknown_models_is_refused(client: TestClient) -> None:
    assert client.get("/search").status_code == 422
    problem(client.get("/search", params={"query": " "}), 422, "input")
    assert client.get("/search", params={"query": "x", "mode": "all"}).status_code == 422
    for name in ("/etc/passwd", "nothing", "../local"):
        output = problem(
            client.get("/search", params={"query": "x", "profile": name}), 404, "not-found"
        )
        assert "name one of: " in output["help"]


def test_deleting_leaves_nothing_but_a_line_in_the_audit_log(store: Store) -> None:
    remember_party(store)
    recording(store, PARTY, [4.0])
    with store.begin() as session:
        row = session.query(KeyframeRow).one()
        row.blob = sha = store.blobs.put(JPEG)
    with client_of(WordState(store, "local")) as client:
        image = client.get(f"/videos/{PARTY}/clips").json()["items"][0]["keyframes"][0]["image"]
        assert client.get(image).content == JPEG
        problem(client.delete(f"/videos/{PARTY[:8]}"), 422, "request")
        problem(client.delete(f"/videos/{'0' * 16}"), 404, "not-found")
        assert client.delete(f"/videos/{PARTY}").json()["id"] == PARTY
        for path in (f"/videos/{PARTY}", image):
            problem(client.get(path), 404, "not-found")
        problem(client.delete(f"/videos/{PARTY}"), 404, "not-found")
    with store.begin() as session:
        output = [(one.who, one.deed.value, one.subject) for one in audit_entries(session)]
    assert output == [("api (127.0.0.1)", "deleted", PARTY)]
    assert not Path(store.blobs.path(sha)).exists()


def test_what_is_being_watched_is_not_deleted(store: Store) -> None:
    remember_party(store)
    with client_of(WordState(store, "local")) as client:
        with video_locks.exclusive_lock(store, PARTY, "party"):
            assert client.get("/videos").json()["items"][0]["state"] == "watching"
            problem(client.delete(f"/videos/{PARTY}"), 409, "busy")
        assert client.delete(f"/videos/{PARTY}").status_code == 200


def test_health_needs_the_database_and_says_so_plainly(home: Home, database: str) -> None:
    with open_store(home, database) as store, client_of(WordState(store, "local")) as client:
        assert client.get("/health").json() == {"status": "ok"}
    lost = Store(home, parse_url("postgresql://me:secret@127.0.0.1:1/none"))
    with client_of(WordState(lost, "local")) as client:
        gone = client.get("/health")
        assert gone.status_code == 503
        assert gone.text.startswith("the database does not answer")
        assert gone.headers["content-type"].startswith("text/plain")
        output = problem(client.get("/videos"), 503, "database")
    assert "retry-after" in gone.headers
    assert "secret" not in str(output)


def test_tools_of_strategies_are_used_by_their_names(client: TestClient) -> None:
    listed = {one["name"]: one for one in client.get("/tools").json()}
    assert listed["nearest"]["strategy"] == "plain-rag"
    assert listed["nearest"]["arguments"]["properties"]["lines"]["maximum"] == 200
    body = {"query": "rain", "arguments": {"lines": 2}, "video": [PARTY]}
    found = client.post("/tools/nearest", json=body).json()
    assert (found["mode"], len(found["evidence"])) == ("nearest", 2)
    early = client.post("/tools/nearest", json={**body, "as_of": "1:00"}).json()
    assert all(piece["end_s"] <= 60 for piece in early["evidence"])
    event = client.post("/tools/event", json={"query": "rain", "video": [PARTY]}).json()
    assert event["focus"]["ref"].startswith("s")
