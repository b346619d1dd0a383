"""The API in this process over a store, with models that need no weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient

from api.access import AccessRules
from api.door import ApiState
from api.server import make_app
from graphs.runner import Runner
from models.toolbox import Toolbox
from store.queries.encoders import LibraryEncoders
from tests.support.asking import WordToolbox
from tests.support.machine import ScriptedContexts

HERE = "http://127.0.0.1"
CLIENT = ("127.0.0.1", 50_000)


@dataclass(frozen=True)
class WordState(ApiState):
    """A workspace whose models know words only; ``contexts`` makes run contexts from a script."""

    contexts: ScriptedContexts | None = None
    models: Toolbox | None = None

    def toolbox(self, profile: str | None = None) -> Toolbox:
        return self.models or WordToolbox()

    def runner(self, profile: str | None = None) -> Runner:
        if self.whole is not None:
            return self.whole.runner(profile).for_store(self.store)
        with self._lock:
            key = ("every", LibraryEncoders(None, None))
            if key not in self._runners:
                self._runners[key] = Runner(self.store, self.toolbox(), self.contexts)
            return self._runners[key]


@contextmanager
def client_of(workspace: ApiState, ways: AccessRules | None = None) -> Iterator[TestClient]:
    app = make_app(workspace, ways or AccessRules())
    with TestClient(app, base_url=HERE, client=CLIENT, raise_server_exceptions=True) as client:
        yield client
    workspace.close()


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream, as a browser would read them."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    output: dict[str, Any] = answer.json()
    assert (output["status"], output["code"]) == (status, code)
    assert output["title"]
    assert output["detail"]
    assert output["help"]
    return output
