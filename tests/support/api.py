"""The API in this process over a store, with models that need no weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient

from api.app_state import ApiState
from api.application import make_app
from api.auth import AccessRules
from graphs.runner import Runner
from models.toolbox import Toolbox
from tests.support.asking import WordToolbox
from tests.support.machine import ScriptedDesks

HERE = "http://127.0.0.1"
CLIENT = ("127.0.0.1", 50_000)


@dataclass(frozen=True)
class WordDesk(ApiState):
    """A desk whose models know words only; ``desks`` has runs go by a script, ``models`` others."""

    desks: ScriptedDesks | None = None
    models: Toolbox | None = None

    def toolbox(self, profile: str | None = None) -> Toolbox:
        return self.models or WordToolbox()

    def runner(self, profile: str | None = None) -> Runner:
        with self._lock:
            if "every" not in self._runners:
                self._runners["every"] = Runner(self.store, self.toolbox(), self.desks)
            return self._runners["every"]


@contextmanager
def client_of(desk: ApiState, ways: AccessRules | None = None) -> Iterator[TestClient]:
    """A client of the API, which is on the same machine."""
    app = make_app(desk, ways or AccessRules())
    with TestClient(app, base_url=HERE, client=CLIENT, raise_server_exceptions=True) as client:
        yield client
    desk.close()


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream, as a browser would read them."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The problem that an answer is, which says what to do."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert (told["status"], told["code"]) == (status, code)
    assert told["title"]
    assert told["detail"]
    assert told["help"]
    return told
