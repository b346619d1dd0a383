"""Prefect as Homer runs it: on this machine, quiet, in the data directory."""

from __future__ import annotations

import pickle
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings
from pydantic import BaseModel

from flows.prefect_executor import InProcess, in_process
from services import supervisor
from services.supervisor import (
    AppServer,
    PrefectServer,
    _command,
    _for_asyncpg,
    api_url,
    drain_events,
    prefect_environment,
)
from store.home import Home


def test_nothing_is_sent_out(tmp_path: Path) -> None:
    variables = prefect_environment(Home(tmp_path))
    assert variables["DO_NOT_TRACK"] == "1"
    assert variables["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert variables["PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED"] == "false"


def test_everything_prefect_keeps_is_in_the_data_directory(tmp_path: Path) -> None:
    made = prefect_environment(Home(tmp_path))
    assert made["PREFECT_HOME"] == str(tmp_path / "prefect")
    # Else the server would put its pages together among the installed packages.
    assert made["PREFECT_SERVER_UI_STATIC_DIRECTORY"] == str(tmp_path / "prefect" / "ui")


def test_prefect_knows_every_setting_that_is_made(tmp_path: Path) -> None:
    """A misspelt variable would be passed over in silence."""
    from prefect.settings import Settings

    known = set()

    def walk(model: type[BaseModel], prefix: str) -> None:
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                walk(kind, f"{prefix}{name}_")
            known.add(f"{prefix}{name}".upper())
            alias = field.validation_alias
            known.update(str(choice).upper() for choice in getattr(alias, "choices", []))

    walk(Settings, "PREFECT_")
    made = {name for name in prefect_environment(Home(tmp_path)) if name != "DO_NOT_TRACK"}
    made.discard("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL")  # one of the logging file's own
    assert made <= known


def test_it_listens_on_this_machine_only() -> None:
    command = _command(4321)
    assert command[0] == sys.executable
    assert command[-4:] == ["--host", "127.0.0.1", "--port", "4321"]


def test_its_database_is_reached_over_the_socket_by_asyncpg() -> None:
    url = "postgresql+psycopg://homer@/prefect?host=/a/socket&port=5432"
    assert _for_asyncpg(url) == "postgresql+asyncpg://homer@/prefect?host=/a/socket&port=5432"


def test_ones_own_server_is_used_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    monkeypatch.setattr(PrefectServer, "start", lambda _self: pytest.fail("it was started"))
    assert api_url(Home(tmp_path)) == "http://prefect.example/api"


def test_a_running_one_is_found_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(PrefectServer, "address", lambda _self: "http://127.0.0.1:9")
    monkeypatch.setattr(supervisor, "EmbeddedPostgres", lambda _home: pytest.fail("not needed"))
    assert api_url(Home(tmp_path)) == "http://127.0.0.1:9/api"


def test_the_app_runs_with_this_python_and_port(tmp_path: Path) -> None:
    found = list(AppServer(Home(tmp_path))._command(77))
    where = ["--host", "127.0.0.1", "--port", "77"]
    assert found == [sys.executable, "-P", "-m", "ui", *where]


def test_the_scheduler_can_insert_its_runs() -> None:
    """A run names its state, which SQLAlchemy refuses unless it is told to pass it over."""
    from prefect.server.database.orm_models import FlowRun
    from sqlalchemy.orm.bulk_persistence import _expand_other_attrs

    from services.supervisor import omit_state_in_bulk_inserts

    omit_state_in_bulk_inserts()
    row = {"name": "a", "state": {"type": "SCHEDULED"}}
    _expand_other_attrs(FlowRun.__mapper__, [row])
    assert row["name"] == "a"


# What a flow is given in the process of a command stays in that process.


SECRET = "a-key-that-stays-here"


class Opened:
    """An open object with a secret, which cannot be pickled."""

    def __init__(self) -> None:
        self.key, self.close = SECRET, lambda: None


def test_a_flow_uses_the_very_object_that_it_is_given() -> None:
    opened = Opened()
    assert InProcess(opened).get() is opened


def test_server_is_reported_the_name_of_a_run_and_nothing_of_the_object() -> None:
    opened: Any = InProcess(Opened())
    output = in_process.serialize_parameters({"run": "ab", "opened": opened})
    assert output == {"run": "ab", "opened": "<InProcess>"}


def test_a_copy_in_another_process_is_empty() -> None:
    pickled = pickle.dumps(InProcess(Opened()))
    assert SECRET.encode() not in pickled
    with pytest.raises(RuntimeError, match="in the process of the command"):
        pickle.loads(pickled).get()  # noqa: S301 - pickled right here


# Undocumented parts of Prefect that are used work in the pinned versions.


TESTED = {"prefect": "3.8.8"}
"""No server listens there."""


@pytest.mark.parametrize("package", TESTED)
def test_the_version_is_the_one_whose_parts_were_tried(package: str) -> None:
    assert version(package) == TESTED[package]


def test_prefect_drops_events_for_a_server_that_is_gone() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        worker: Any = EventsWorker.instance()
        for number in range(20):
            emit_event("homer.tried", {"prefect.resource.id": f"homer.{number}"})
        start = time.monotonic()
        drain_events(0.2)
        assert time.monotonic() - start < 5
        assert worker._queue.qsize() <= 1
        assert EventsWorker.instance() is not worker
        drain_events(0.2)
