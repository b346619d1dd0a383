"""``homer up``, ``down``, ``password``, ``serve``: what is started is told, and who may come in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from api import server
from auth.signing_in import stored_hash
from cli import services
from cli.main import app
from services.supervisor import AppServer, PrefectServer, ScheduleWorker
from store.embedded import EmbeddedPostgres
from store.home import Home


class Opened:
    """A store that only says what it is."""

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __repr__(self) -> str:
        return "the library"


@pytest.fixture
def begun(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was started and stopped, in order; the schedules did not run."""
    every: list[str] = []

    def start(name: str) -> Any:
        def started(*_: object) -> str:
            every.append(name)
            return f"http://127.0.0.1/{name}"

        return started

    def stop(name: str, was: bool = True) -> Any:
        def stopped(*_: object, **__: object) -> bool:
            every.append(f"no {name}")
            return was

        return stopped

    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(services, "open_store", lambda _: Opened())
    monkeypatch.setattr(PrefectServer, "start", start("prefect"))
    monkeypatch.setattr(AppServer, "start", start("app"))
    monkeypatch.setattr(services, "start_schedules", start("schedules"))
    monkeypatch.setattr(AppServer, "stop", stop("app"))
    monkeypatch.setattr(ScheduleWorker, "stop", stop("schedules", was=False))
    monkeypatch.setattr(PrefectServer, "stop", stop("prefect"))
    monkeypatch.setattr(EmbeddedPostgres, "stop", stop("database"))
    return every


def homer(*words: str, code: int = 0, typed: str = "") -> Result:
    done = CliRunner().invoke(app, [*words], input=typed)
    assert done.exit_code == code, done.output
    return done


def test_up_starts_each_service_once_and_says_where_it_is(begun: list[str]) -> None:
    reported = homer("up").stdout.splitlines()
    assert [line.split()[0] for line in reported] == [
        *("service", "database", "prefect", "app", "schedules", "homer")
    ]
    assert reported[1].endswith("the library")
    assert reported[-1] == "homer down stops them"
    assert [one for one in begun if one != "prefect"] == ["app", "schedules"]
    assert begun[0] == "prefect"


def test_schedules_may_be_left_out(begun: list[str]) -> None:
    assert "schedules" not in homer("up", "--no-schedules").stdout
    assert "schedules" not in begun


def test_json_of_up_is_the_places_alone(begun: list[str]) -> None:
    places = json.loads(homer("up", "--json").stdout)
    assert list(places) == ["database", "prefect", "app", "schedules"]
    assert places["app"] == "http://127.0.0.1/app"


def test_the_app_opens_to_others_only_with_a_password(begun: list[str], home: Home) -> None:
    refused = homer("up", "--address", "0.0.0.0", code=3)
    assert "open to everybody who can reach 0.0.0.0" in refused.stderr
    assert begun == []
    homer("password", typed="a long one\na long one\n")
    reported = homer("up", "--address", "0.0.0.0").stderr
    assert "listens on 0.0.0.0, unencrypted" in reported
    assert "people have to sign in" in reported


def test_down_stops_everything_the_database_last(begun: list[str]) -> None:
    found = dict(line.split(maxsplit=1) for line in homer("down").stdout.splitlines()[1:])
    assert found == (
        {"app": "stopped", "schedules": "did not run", "prefect": "stopped", "database": "stopped"}
    )
    assert begun == ["no app", "no schedules", "no prefect", "no database"]
    assert json.loads(homer("down", "--json").stdout)["schedules"] == "did not run"


def served(monkeypatch: pytest.MonkeyPatch, then: type[BaseException] | None = None) -> list[Any]:
    """What the server is begun with; it ends as told."""
    given: list[Any] = []

    def run(home: Home, how: Any, reported: Any) -> None:
        given.append(how)
        reported("http://here:1")
        if then is not None:
            raise then

    monkeypatch.setattr(server, "serve", run)
    return given


def test_api_says_its_place(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = served(monkeypatch)
    done = homer("serve", "--videos", str(tmp_path), "--questions", "2", "--port", "0")
    assert "http://here:1/docs" in done.stdout
    assert done.stderr == ""
    assert (given[0].port, given[0].folders, given[0].questions) == (0, (tmp_path,), 2)


def test_beyond_this_machine_it_warns(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    assert "0.0.0.0, unencrypted" in homer("serve", "--address", "0.0.0.0").stderr


def test_after_ctrl_c_one_is_told_of_searches(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, KeyboardInterrupt)
    assert "homer trajectory" in homer("serve", code=130).stderr


def test_one_that_does_not_end_is_broken_off(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    served(monkeypatch, server.UnfinishedQuestions)
    assert "homer trajectory" in homer("serve").stderr
    assert ended == [130]


@pytest.mark.parametrize("words", [("--questions", "0"), ("--questions", "13"), ("--port", "-1")])
def test_what_cannot_be_served_with_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    given = served(monkeypatch)
    homer("serve", *words, code=2)
    assert given == []


def test_a_password_may_come_from_a_file(home: Home, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a long one\nand a note\n")
    homer("password", "--file", str(tmp_path / "secret"))
    first = stored_hash(home)
    assert first
    homer("password", "--file", str(tmp_path / "nothing"), code=2)
    assert stored_hash(home) == first
