"""What docs/api.md shows can be asked so: its paths are there, and its bodies are understood."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from pydantic import BaseModel
from starlette.routing import Match

from api.application import make_app
from api.auth import MIN_KEY_CHARS, AccessRules
from api.routes.chat import ChatRequest
from api.routes.ingestion import Add
from api.routes.questions import Ask
from api.server import GRACE_S, PORT
from domain.asking import Mode
from library.params import DEFAULT_LIMIT, MAX_LIMIT
from library.registry import ACTS

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", " ")
CALLS = [shlex.split(line)[1:] for line in BLOCKS.splitlines() if line.startswith("curl ")]
BODIES: dict[str, type[BaseModel]] = {
    "/questions": Ask,
    "/videos": Add,
    "/videos/estimate": Add,
    "/v1/chat/completions": ChatRequest,
    **{act.route.split(" ")[1]: act.arguments for act in ACTS if act.route.startswith("POST ")},
}


def option(words: list[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


@pytest.mark.parametrize("words", CALLS, ids=range(len(CALLS)))
def test_every_call_in_the_document_can_be_made(words: list[str]) -> None:
    address = urlsplit(next(word for word in words if word.startswith("http://127.0.0.1")))
    assert address.port == PORT
    body = option(words, "-d")
    method = option(words, "-X") or ("POST" if body else "GET")
    scope: Any = {"type": "http", "method": method, "path": address.path, "headers": []}
    routes = make_app(cast("Any", None), AccessRules()).routes
    assert any(matches(route, scope) for route in routes), address.path
    if body is not None:
        assert "Content-Type: application/json" in words
        given = json.loads(body)
        posts = [act for act in ACTS if act.route.startswith("POST ")]
        act = next((a for a in posts if a.route.split("{")[0] in f"POST {address.path}"), None)
        if act is None:
            BODIES[address.path].model_validate(given)
        else:  # What is in the path is the last of it.
            named = dict.fromkeys(re.findall(r"{(\w+)}", act.route), address.path.split("/")[-1])
            act.arguments.model_validate(named | given)


def matches(route: Any, scope: Any) -> bool:
    return bool(route.matches(scope)[0] is Match.FULL)


def test_the_document_shows_every_way_to_ask() -> None:
    shown = {urlsplit(word).path for words in CALLS for word in words if word.startswith("http")}
    assert len(CALLS) > 12
    assert {path.split("/")[1] for path in shown} == {
        *("videos", "questions", "v1", "search", "tools", "media", "jobs", "alerts", "people")
    }
    for mode in Mode:
        assert f"`{mode}`" in TEXT


def test_its_limits_are_those_of_the_code() -> None:
    assert f"`limit` is {DEFAULT_LIMIT} by default and at most {MAX_LIMIT}" in TEXT
    assert f"of {MIN_KEY_CHARS} characters or more" in TEXT
    assert GRACE_S == 10
