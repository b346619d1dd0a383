"""Videos are added over HTTP by path, and watched by the same command as the app has them."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from api.access import MIN_KEY_CHARS, AccessRules, parse_keys
from api.routes import videos
from cli.main import app
from domain.errors import DatabaseError
from flows.jobs import Jobs
from services.supervisor import PrefectServer
from store.database import Store
from tests.support.api import WordState, client_of, problem
from tests.support.media import make_video

NOTES = "import json, sys; print('homer: odd', json.dumps(sys.argv[1:]), flush=True)"
WAITS = "import time; time.sleep(60)"
KEY = "a" * MIN_KEY_CHARS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "films"
    place.mkdir()
    make_video(place / "talk.mp4", seconds=0.5)
    (tmp_path / "secret.mp4").write_bytes(b"film")
    return place


def state_of(store: Store, *folders: Path) -> WordState:
    return WordState(store, "local", folders=folders)


def pretend(patch: pytest.MonkeyPatch, code: str) -> None:
    patch.setattr(Jobs, "command", (sys.executable, "-c", code))


def ended(client: TestClient, where: str) -> dict[str, object]:
    for _ in range(600):
        output: dict[str, object] = client.get(where).json()
        if output["state"] != "watching":
            return output
        time.sleep(0.05)
    raise AssertionError("the job did not end")


@pytest.mark.parametrize("server", ["", "http://prefect:4200/api"])
def test_a_file_is_given_to_the_command_that_watches(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    pretend(monkeypatch, NOTES)
    monkeypatch.setenv("PREFECT_API_URL", server)
    with client_of(state_of(store, folder)) as client:
        body = {"path": "talk.mp4", "profile": "small", "again": True}
        answer = client.post("/videos", json=body)
        assert answer.status_code == 202
        where = answer.headers["location"]
        assert where == f"/jobs/{answer.json()['id']}"
        output = ended(client, where)
        assert client.get("/jobs").json() == [output]
    file = str(folder / "talk.mp4")
    assert output["files"] == ["talk.mp4"]
    assert str(folder) not in str(output)
    (job,) = Jobs(store.home).every()
    arguments = json.loads(job.said[-1].removeprefix("homer: odd "))
    direct = [] if server else ["--direct"]
    assert arguments == ["ingest", "--profile", "small", "--again", *direct, "--", file]


def test_it_is_a_flow_where_homers_own_prefect_runs_and_none_is_begun(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, NOTES)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(PrefectServer, "address", lambda _: "http://127.0.0.1:1")
    with client_of(state_of(store, folder)) as client:
        where = client.post("/videos", json={"path": "talk.mp4"}).headers["location"]
        assert "--direct" not in str(ended(client, where)["said"])


def test_file_is_watched_once(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, WAITS)
    monkeypatch.setattr(videos, "MAX_JOBS", 1)
    make_video(folder / "other.mp4", seconds=0.5)
    with client_of(state_of(store, folder)) as client:
        job = client.post("/videos", json={"path": "talk.mp4"}).json()
        assert job["state"] == "watching"
        output = problem(client.post("/videos", json={"path": "talk.mp4"}), 409, "busy")
        assert job["id"] in output["detail"]
        full = client.post("/videos", json={"path": "other.mp4"})
        problem(full, 429, "crowded")
        assert int(full.headers["retry-after"]) >= 60
        Jobs(store.home).pause(job["id"])
        ended(client, f"/jobs/{job['id']}")


def test_what_may_not_be_added_is_refused_with_the_reason(store: Store, folder: Path) -> None:
    with client_of(state_of(store, folder)) as client:

        def refused(status: int, code: str, **body: object) -> str:
            return str(problem(client.post("/videos", json=body), status, code)["detail"])

        assert "not fetched" in refused(422, "input", path="https://example.org/talk.mp4")
        assert "not fetched" in refused(422, "input", url="https://example.org/talk.mp4")
        assert "`path`" in refused(422, "input", url="talk.mp4")
        assert "`path`" in refused(422, "input")
        there = refused(403, "outside", path="../secret.mp4")
        assert refused(403, "outside", path="../nothing.mp4") == there
        refused(404, "not-found", path="nothing.mp4")
        refused(404, "not-found", path="talk.mp4", profile="mine.toml")
        assert client.get("/jobs").json() == []
    with client_of(state_of(store)) as client:
        output = problem(client.post("/videos", json={"path": "talk.mp4"}), 403, "outside")
        assert "homer serve --videos" in output["help"]


def test_one_file_is_one_job(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, WAITS)
    with client_of(state_of(store, folder)) as client, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(client.post, "/videos", json={"path": "talk.mp4"}) for _ in range(4)]
        assert sorted(one.result().status_code for one in asked) == [202, 409, 409, 409]
        (job,) = Jobs(store.home).every()
        Jobs(store.home).pause(job.id)
        ended(client, f"/jobs/{job.id}")


def test_who_added_it_is_known(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, NOTES)
    ways = AccessRules(parse_keys(f"ann:{KEY}"))
    with client_of(state_of(store, folder), ways) as client:
        client.headers["Authorization"] = f"Bearer {KEY}"
        where = client.post("/videos", json={"path": "talk.mp4"}).headers["location"]
        ended(client, where)
        problem(client.post("/videos", json={"path": "nothing.mp4"}), 404, "not-found")
        monkeypatch.setattr(Jobs, "command", (str(folder / "no program"),))
        problem(client.post("/videos", json={"path": "talk.mp4"}), 500, "fault")
    job = where.removeprefix("/jobs/")
    # Who, which deed, of what.
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    output = json.loads(CliRunner().invoke(app, ["audit", "--json"]).stdout)
    assert [(one["who"], one["deed"], one["subject"]) for one in output] == [
        ("api (ann)", "added", job)
    ]


def test_nothing_is_begun_that_cannot_be_put_on_record(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseError("the database is away")

    pretend(monkeypatch, WAITS)
    monkeypatch.setattr(videos, "record_deed", away)
    with client_of(state_of(store, folder)) as client:
        problem(client.post("/videos", json={"path": "talk.mp4"}), 503, "database")
        assert client.get("/jobs").json() == []


def test_an_estimate_discloses_no_folder(store: Store, folder: Path) -> None:
    (folder / "odd.mp4").write_text("no video")
    with client_of(state_of(store, folder)) as client:
        answer = client.post("/videos/estimate", json={"path": "odd.mp4"})
        assert problem(answer, 422, "input")["detail"].startswith("odd.mp4: not a video")
        assert str(folder) not in answer.text
