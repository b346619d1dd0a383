"""Whatever breaks at a named point: one more run, and all is as if nothing had happened.

``--full`` runs every point with every fault and prints the table, the short suite a part of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from domain.errors import HomerError
from domain.faults import FaultPoint as P
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import migrate
from store.queries.backup import set_library_id
from tests.support.chaos import (
    DROP,
    ENDED,
    FAULTS,
    FULL_DISK,
    KILL,
    KILL_POSTGRES,
    SCENARIOS,
    TOLD,
    broken_off,
    writing,
)
from tests.support.full_suite import sample
from tests.support.openai_server import Answer, OpenAIServer

WRITES = (P.BLOB_WRITING, P.BACKUP_PLACING)
"""Where a full disk is met."""
IN_FLIGHT = (P.CALL_SENDING, P.CALL_ANSWERED)
"""Where a reply may be lost that nobody wrote down: what was under way alone is paid for again."""
SHORT = {
    "watch": {(P.CLIP_COMMITTING, KILL), (P.CLIP_COMMITTED, KILL_POSTGRES)},
    "ask": {(P.EVENTS_WRITTEN, KILL)},
    "back up": {(P.BACKUP_PLACING, FULL_DISK)},
    "import": {(P.IMPORTED_ROWS, DROP)},
    "delete": {(P.BLOB_REMOVED, KILL)},
}
"""The faults of the short suite: each kind of fault, in the work that people do most."""


def cases() -> Iterator[Any]:
    for name, scenario in SCENARIOS.items():
        for point, fault, at in product(scenario.points, FAULTS, (1, 2)):
            if (fault == FULL_DISK) > (point in WRITES):
                continue
            short = at == 1 and (point, fault) in SHORT.get(name, ())
            marks = () if short else pytest.mark.full
            case = f"{name}: {point}: {fault} {at}"
            yield pytest.param(name, point, fault, at, id=case, marks=marks)


Prepared = Callable[[str], Store]


class Workshop:
    """Makes libraries that are prepared for a scenario: once, and then copies."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._ready: set[str] = set()

    def library(self, name: str) -> Store:
        self._server.start()
        if name not in self._ready:
            url = self._server.ensure_database(_database(name))
            migrate(url)
            with open_store(Home(self._folder / name).make(), url) as store:
                with store.begin() as session:
                    set_library_id(session, uuid4().hex)
                SCENARIOS[name].prepare(store)
            self._ready.add(name)
        copy = f"c{uuid4().hex}"
        self._admin(f"CREATE DATABASE {copy} TEMPLATE {_database(name)}")
        shutil.copytree(self._folder / name, self._folder / copy)
        return open_store(Home(self._folder / copy), self._server.url(copy))

    def _admin(self, command: str) -> None:
        url = self._server.url("postgres").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(command.encode())


def _database(name: str) -> str:
    return f"ready_{name.replace(' ', '_')}"


@pytest.fixture(scope="module")
def workshop(server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(server, tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def prepared(workshop: Workshop) -> Iterator[Prepared]:
    opened: list[Store] = []

    def prepare(name: str) -> Store:
        opened.append(workshop.library(name))
        return opened[-1]

    yield prepare
    for store in opened:
        store.close()


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, tuple[Any, int]]:
    return {}


def expected(name: str, prepared: Prepared, known: dict[str, tuple[Any, int]]) -> tuple[Any, int]:
    """What comes of the work where nothing goes wrong, and how many calls that takes."""
    if name not in known:
        store = prepared(name)
        with OpenAIServer(writing) as model:
            SCENARIOS[name].work(store, model.base_url)
        known[name] = SCENARIOS[name].outcome(store), len(model.requests)
    return known[name]


@pytest.mark.parametrize(("name", "point", "fault", "at"), list(cases()))
def test_one_more_run_and_all_is_as_if_nothing_had_happened(
    name: str,
    point: P,
    fault: str,
    at: int,
    prepared: Prepared,
    undisturbed: dict[str, tuple[Any, int]],
    server: EmbeddedPostgres,
) -> None:
    outcome, calls = expected(name, prepared, undisturbed)
    scenario, store = SCENARIOS[name], prepared(name)
    with OpenAIServer(writing) as model:
        code = broken_off(name, store.url, store.home.root, model.base_url, fault, point, at)
        # A point that is passed only once is not met a second time.
        assert code in ({-9} if fault == KILL and at == 1 else {-9, ENDED, TOLD})
        server.start()
        scenario.work(store, model.base_url)
        # Beside the clip whose call it broke off, one more may have been under way.
        assert len(model.requests) <= calls + (point in IN_FLIGHT) + (name == "watch")
        again = len(model.requests)
        scenario.work(store, model.base_url)
        assert len(model.requests) == again, "what is done is not done again"
    assert scenario.outcome(store) == outcome


LATER = {"segment", "segment_revision", "patch"}
"""How the event graph grows when a clip had to be left for another run, and comes late."""


def standing(found: Any) -> Any:
    """What holds, whatever its number: a clip whose model fails is stored with lines by rules,
    which what the model writes later supersedes at once."""
    if isinstance(found, dict):
        return {name: standing(one) for name, one in found.items() if name != "name"}
    if isinstance(found, list | tuple):
        return [
            standing(one)
            for one in found
            if not (isinstance(one, dict) and one.get("superseded_at") == one.get("clip", ""))
        ]
    return found


MODEL_FAULTS = {
    "no reply in time": Answer(delay_s=3),
    "hangs up": Answer(drop=True),
    "garbled": Answer("{lines: [[,,"),
    "nothing": Answer(""),
    "server error": Answer({"error": {"message": "busy"}}, 500),
}


@pytest.mark.parametrize(
    ("name", "fault", "times"),
    sample([("watch", "garbled", 1)], product(["watch", "ask"], MODEL_FAULTS, [1, 9])),
)
def test_a_model_that_fails_for_a_while_leaves_no_trace_in_memory_and_answers(
    name: str,
    fault: str,
    times: int,
    prepared: Prepared,
    undisturbed: dict[str, tuple[Any, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
    monkeypatch.setattr("models.retries.PROBE_S", 1.0)
    known, _calls = expected(name, prepared, undisturbed)
    scenario, store, met = SCENARIOS[name], prepared(name), 0

    def failing(request: dict[str, Any]) -> Any:
        nonlocal met
        met += 1
        return MODEL_FAULTS[fault] if 2 <= met < 2 + times else writing(request)

    with OpenAIServer(failing) as model:
        for _ in range(2 + times):
            with suppress(HomerError):
                scenario.work(store, model.base_url, timeout_s=1.0)
    left = LATER if name == "watch" else set[str]()
    found = scenario.gist(scenario.outcome(store), left)
    assert standing(found) == standing(scenario.gist(known, left))
